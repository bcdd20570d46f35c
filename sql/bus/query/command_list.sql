-- command_list.sql - $1 domain, $2 status, $3 type, $4 ids below, $5 limit, $6 rows read at most. Columns: as pawl.command_page, and
-- due_at: when a delayed command is due; null: it is not delayed. A row without an id ends a page behind which there may be more.
select coalesce(l.id, 0) as id, l.command_id, l.domain, l.type, l.status, l.attempts, l.created_at, pawl.micros(d.due) as due_at, l.error, l.searched_to
from pawl.command_page($1, $2, $3, $4, $5, $6) l
left join lateral (select d.due from pawl.delayed d where d.id = l.id limit 1) d on true
order by l.searched_to desc
