-- What is known about the head of the queue; one row per priority, the same three numbers in each. first: null when empty
-- $1 domain number, $2 low watermarks, $3 types or null
select h.allocated, h.running, h.oldest, coalesce(f.pos, h.allocated + 1) as first
from pawl.decided_position($1::integer, $2::bigint[], $3::text[]) h,
     unnest(h.firsts) with ordinality f (pos, priority)
order by f.priority
