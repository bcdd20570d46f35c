-- command_show.sql - $1 command id. Columns: value, one row; NULL when unknown.
select pawl.command_show($1)::text as value
