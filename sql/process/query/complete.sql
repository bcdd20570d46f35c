-- $1 process ids, $2 domains or null, $3 operator, $4 reason, $5 result
select ord, verdict, is_new, decision, operator, decided_at, domains
from pawl.command_decide($1, pawl.process_domains($1, $2), 'complete', $3, $4, $5) order by ord
