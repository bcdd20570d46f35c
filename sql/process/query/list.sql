-- Processes, newest first. $1 domain, $2 type, $3 status, $4 step, $5 text, $6 at least so many ms old, $7 ids below, $8 limit; null: any.
-- A row without an id is the end of a page that may have another one behind it.
select coalesce(l.id, 0) as id, l.process_id, l.domain, l.type, l.status, l.step, pawl.micros(l.created_at) as created_at, l.error, l.last
from pawl.process_list($1, $2, $3, $4, $5, $6::bigint * interval '1 ms', $7, $8) l
