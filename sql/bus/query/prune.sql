-- prune.sql - $1 most rows, $2 days to keep ended commands, $3 days to keep the audit. Columns: value, rows that went.
select pawl.prune($1, make_interval(days => $2), make_interval(days => $3)) as value
