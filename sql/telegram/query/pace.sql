-- When may a message be sent: $1 bot, $2 chat, $3 is it a confirmation, $4 ms per message of a chat, $5 messages per minute of a group, $6 per second of all, $7 the longest wait for a reserved time in ms.
-- Columns: chat_id (where it is now), wait_ms, is_reserved, refusals, is_expired (never).
select p.chat_id, p.wait_ms, p.is_reserved, p.refusals, false as is_expired
from pawl.telegram_pace_message($1::bigint, $2::bigint, $3::boolean, $4::integer, $5::integer, $6::integer, $7::integer) p
