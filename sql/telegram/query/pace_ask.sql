-- When may a question be asked, which has no chat and no answer that anyone sees: $1 bot, $2 messages per second of all, $3 the longest wait for a reserved time in ms.
-- Columns: wait_ms, is_reserved.
select p.wait_ms, p.is_reserved from pawl.telegram_pace($1::bigint, '{0}', 0, 1, $2::integer, $3::integer) p
