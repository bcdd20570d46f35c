-- command_show.sql - $1 command id, $2 domain or null. Columns: value, one row; NULL when unknown.
select pawl.command_show($1, $2)::text as value
