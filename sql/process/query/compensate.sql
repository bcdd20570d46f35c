-- $1 process ids, $2 domains or null, $3 operator, $4 reason. wake: domains in which commands were queued, joined by commas
select ord, verdict, is_new, decision, operator, decided_at, domains, nullif(current_setting('pawl.wake', true), '') as wake
from pawl.process_compensate($1, $2, $3, $4) order by ord
