-- prune.sql - $1 most rows, $2 days to keep ended commands, $3 days to keep the audit, $4 and $5 where to go on in each, $6 days to
-- keep keys. Columns: gone, commands_after, audit_after, over (both walks have come to their end).
select greatest(c.gone, a.gone, k.gone) as gone, coalesce(c.after, -9223372036854775808) as commands_after,
       coalesce(a.after, -9223372036854775808) as audit_after, c.after is null and a.after is null as over
from pawl.prune_commands($1, make_interval(days => $2), $4) c, pawl.prune_audit($1, make_interval(days => $3), $5) a,
     pawl.prune_keys($1, make_interval(days => greatest($6, $2))) k (gone)
