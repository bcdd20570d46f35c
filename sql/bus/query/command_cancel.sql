-- command_cancel.sql - $1 command ids, $2 domains or null, $3 operator, $4 reason. Columns: as pawl.command_cancel.
select ord, verdict, is_new, decision, operator, decided_at, domains
from pawl.command_cancel($1, $2, $3, $4)
order by ord
