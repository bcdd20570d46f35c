-- $1 process ids, $2 domains or null, $3 operator, $4 reason, $5 result. wake: domains in which commands were queued, joined by commas;
-- status: the present one of a process about which this call has not decided
select ord, verdict, is_new, decision, operator, decided_at, domains, nullif(current_setting('pawl.wake', true), '') as wake,
       case when not is_new then pawl.decided_status(($1::uuid[])[ord], (pawl.process_domains(array[($1::uuid[])[ord]], array[($2::text[])[ord]]))[1]) end as status
from pawl.command_decide($1, pawl.process_domains($1, $2), 'complete', $3, $4, $5) order by ord
