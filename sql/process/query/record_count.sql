-- How many records processes have, and the time: see pawl.process_counted. $1 numbers of processes, $2 tokens of their leases, $3 counted at most
select pawl.micros(pawl.now()) as now_us, c.secret, c.value, c.is_compensating
from pawl.process_counted($1::bigint[], $2::bigint[], $3::integer) c
