-- $1 process ids, $2 domains or null, $3 operator, $4 reason, $5 from this step or null. domains: of the bus, to be woken; or those that have an ambiguous id
select r.ord, r.verdict, r.is_new, r.decision, r.operator, r.decided_at, coalesce((pawl.process_domains($1, $2))[r.ord], r.domains) as domains
from pawl.process_retry($1, $2, $3, $4, $5) r
order by r.ord
