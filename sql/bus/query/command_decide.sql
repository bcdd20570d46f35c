-- command_decide.sql - $1 command ids, $2 domains or null, $3 decision, $4 operator, $5 reason, $6 result. Columns: as
-- pawl.command_decide; wake: domains in which commands were queued by it, joined by commas; status: the present one of a command
-- about which this call has not decided.
select ord, verdict, is_new, decision, operator, decided_at, domains, nullif(current_setting('pawl.wake', true), '') as wake,
       case when not is_new then pawl.decided_status(($1::uuid[])[ord], ($2::text[])[ord]) end as status
from pawl.command_decide($1, $2, $3, $4, $5, $6)
order by ord
