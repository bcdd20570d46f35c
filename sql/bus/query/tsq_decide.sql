-- tsq_decide.sql - $1 command ids, $2 action, $3 operator, $4 reason, $5 result. Columns: ord, verdict.
select ord, verdict
from pawl.tsq_decide($1, $2, $3, $4, $5)
order by ord
