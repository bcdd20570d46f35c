-- Commands behind number $1 that are completed, and the microseconds from the first claim to the last settle among them.
select count(*) as completed,
       coalesce(pawl.micros(max(o.ended_at)) - pawl.micros(min(o.started_at)), 0) as us
from pawl.outcome o
where o.id > $1 and o.status = 'COMPLETED'
