-- command_list.sql - $1 domain, $2 status, $3 type, $4 ids below, $5 limit. Columns: as pawl.command_list.
select id, command_id, domain, type, status, attempts, created_at, error
from pawl.command_list($1, $2, $3, $4, $5)
