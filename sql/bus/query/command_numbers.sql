-- $1 domains, $2 command ids, as many of both. Columns: value, in the order of the ids; 0 when unknown.
select coalesce(c.id, 0) as value
from unnest($1::text[], $2::uuid[]) with ordinality u (domain, command_id, ord)
left join (select n.name, pawl.domain_find(n.name) as id from (select distinct t from unnest($1::text[]) t) n (name)) d on d.name = u.domain
left join lateral (select c.id from pawl.command c where c.command_id = u.command_id and c.domain_id = d.id limit 1) c on true
order by u.ord
