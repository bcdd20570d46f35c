-- backlog.sql - how much work there is. Columns: as pawl.backlog.
select ready, delayed, leased, troubled, drawn, oldest, oldest_ms
from pawl.backlog()
