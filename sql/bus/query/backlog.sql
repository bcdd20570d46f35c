-- backlog.sql - how much work there is. Columns: as pawl.backlog, parked (an estimate) and batch_idle_s.
select ready, delayed, leased, in_tsq, allocated, oldest, oldest_ms, oldest_domain,
       pg_catalog.pg_stat_get_live_tuples('pawl.parked'::regclass) as parked, pawl.batch_idle_s() as batch_idle_s
from pawl.backlog()
