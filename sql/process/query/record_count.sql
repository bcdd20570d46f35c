-- How many records processes have, in the order of the ids, whether they are being compensated, the time, and the value that ids of what they
-- send are derived from. $1 numbers of processes, maybe repeated, $2 counted at most
with counted as materialized (
  select d.id, p.secret, p.phase <> 'forward' as is_compensating,
         (select count(*) from (select from pawl.process_step s where s.id = d.id limit $2::integer) s) as value
  from (select distinct u.id from unnest($1::bigint[]) u (id)) d
  left join pawl.process p on p.id = d.id
)
select pawl.micros(pawl.now()) as now_us, c.secret, c.value, c.is_compensating is true as is_compensating
from unnest($1::bigint[]) with ordinality u (id, ord)
join counted c on c.id = u.id
order by u.ord
