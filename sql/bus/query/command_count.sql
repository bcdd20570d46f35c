-- command_count.sql - $1 domain, $2 status, $3 type. Columns: value.
select pawl.command_count($1, $2, $3) as value
