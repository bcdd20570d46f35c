-- reply_retry.sql - $1 the data of a dead letter of type "reply".
select pawl.reply_retry($1)
