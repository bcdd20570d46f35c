-- $1 process ids, $2 domains or null, $3 version, $4 operator, $5 reason. domains: of the bus, to be woken
select m.ord, m.verdict, m.is_new, coalesce(m.from_version, 0) as from_version, m.reason, m.operator, m.moved_at, m.domains
from pawl.process_move($1, $2, $3, $4, $5) m
order by m.ord
