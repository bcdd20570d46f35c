-- backlog.sql - how much work there is. Columns: as pawl.backlog, and batch_idle_s.
select ready, delayed, leased, troubled, allocated, oldest, oldest_ms, pawl.batch_idle_s() as batch_idle_s
from pawl.backlog()
