-- on_complete_send.sql - $1 the data of a dead letter of type "on_complete".
select pawl.on_complete_send($1)
