-- $1 process ids, $2 domains or null, $3 operator, $4 reason. domains: of the bus, to be woken; or those that have an ambiguous id
select c.ord, c.verdict, c.is_new, c.decision, c.operator, c.decided_at, coalesce((pawl.process_domains($1, $2))[c.ord], c.domains) as domains
from pawl.process_compensate($1, $2, $3, $4) c
order by c.ord
