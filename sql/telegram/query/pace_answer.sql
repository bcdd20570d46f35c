-- When may an answer to a button press be sent: $1 bot, $2 its command, $3 messages per second of all, $4 the longest wait for a reserved time in ms.
-- Columns: chat_id (0), wait_ms, is_reserved, refusals, is_expired (it is dropped).
select p.chat_id, p.wait_ms, p.is_reserved, p.refusals, p.is_expired
from pawl.telegram_pace_answer($1::bigint, $2::bigint, $3::integer, $4::integer) p
