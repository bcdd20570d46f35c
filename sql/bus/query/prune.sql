-- prune.sql - $1 most rows, $2 days to keep ended commands, $3 where to go on, $4 days to keep keys.
-- Columns: gone, after, over (the scan is complete).
select greatest(c.gone, k.gone) as gone, coalesce(c.after, -9223372036854775808) as after, c.after is null as over
from pawl.prune_commands($1, make_interval(days => $2), $3) c,
     pawl.prune_keys($1, make_interval(days => greatest($4, $2))) k (gone)
