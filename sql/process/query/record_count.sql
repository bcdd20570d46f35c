-- How many records processes have, in the order of the ids, the time, and the value that ids of what they send are derived from.
-- $1 numbers of processes, $2 counted at most
select pawl.micros(pawl.now()) as now_us, (select p.secret from pawl.process p where p.id = u.id) as secret,
       (select count(*) from (select from pawl.process_step s where s.id = u.id limit $2::integer) s) as value
from unnest($1::bigint[]) with ordinality u (id, ord)
order by u.ord
