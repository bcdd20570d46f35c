-- maintain.sql - $1 most rows, $2 ms after which an open batch without new commands is sealed, $3 days to keep replies, $4 days to
-- keep resolved dead letters, $5 the reply queue to go on from, or null.
-- Columns: expired (batches), replies, letters, after (null: that was the last queue).
select pawl.batch_expire(least($1::integer, 100), $2::bigint * interval '1 ms') as expired, r.gone as replies, r.after,
       pawl.prune_dead_letters($1::integer, make_interval(days => $4::integer)) as letters
from pawl.prune_replies($1::integer, make_interval(days => $3::integer), $5::text) r
