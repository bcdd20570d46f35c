-- Keep leases for $3 ms more; a verdict for each, in order.
-- $1 ids, $2 tokens, $3 ms
select e.verdict
from pawl.extend($1::bigint[], $2::bigint[], $3::integer) e
order by e.ord
