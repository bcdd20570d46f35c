-- command_numbers.sql - $1 domain, $2 command ids. Columns: value, in the order of the ids; 0 when unknown.
select coalesce(c.id, 0) as value
from (select pawl.domain_find($1) as id) d
cross join unnest($2::uuid[]) with ordinality u (command_id, ord)
left join pawl.command c on c.command_id = u.command_id and c.domain_id = d.id
order by u.ord
