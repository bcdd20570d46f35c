-- prune.sql - $1 most rows, $2 days to keep ended commands, $3 where to go on, $4 days to keep keys.
-- Columns: gone, after, over (the scan is complete).
select r.gone, coalesce(r.after, -9223372036854775808) as after, r.after is null as over
from pawl.retain($1, make_interval(days => $2), make_interval(days => greatest($4, $2)), $3) r
