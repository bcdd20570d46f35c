-- command_list.sql - $1 domain, $2 status, $3 type, $4 ids below, $5 limit. Columns: as pawl.command_list, and
-- due_at: when a delayed command is due; null: it is not delayed.
select l.id, l.command_id, l.domain, l.type, l.status, l.attempts, l.created_at, pawl.micros(d.due) as due_at, l.error
from pawl.command_list($1, $2, $3, $4, $5) l
left join lateral (select d.due from pawl.delayed d where d.id = l.id limit 1) d on true
order by l.id desc
