-- command_cancel.sql - $1 command ids, $2 reason, $3 operator. Columns: ord, verdict.
select ord, verdict
from pawl.cancel($1, $2, $3)
order by ord
