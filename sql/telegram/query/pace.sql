-- When may a message be sent: $1 bot, $2 chat, $3 ms per message of a chat, $4 messages per minute of a group, $5 per second of all, $6 the longest wait for a reserved time in ms.
-- Columns: chat_id (where it is now), wait_ms, is_reserved, refusals, is_expired (never).
select p.chat_id, p.wait_ms, p.is_reserved, p.refusals, false as is_expired
from pawl.telegram_pace($1::bigint, array[$2::bigint], $3::integer, $4::integer, $5::integer, $6::integer) p
