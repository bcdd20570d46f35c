-- $1 channel text, $2 payload text: the listener's note to itself.
select pg_notify($1, $2)
