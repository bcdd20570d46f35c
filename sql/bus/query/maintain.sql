-- maintain.sql - $1 most rows, $2 ms after which an open batch without new commands is sealed, $3 days to keep replies, $4 days to
-- keep resolved dead letters, $5 the reply queue to go on from, or null, $6 how many reply queues pawl creates in all.
-- Columns: expired (batches), replies, letters, after (null: that was the last queue).
select m.expired, m.replies, m.after, m.letters
from pawl.maintain($1::integer, $2::bigint * interval '1 ms', make_interval(days => $3::integer), make_interval(days => $4::integer), $5::text) m,
  pawl.reply_queues_bound($6::integer)
