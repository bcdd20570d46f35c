-- queries.sql - the statements that C sends for the Bot API: `-- name: NAME` begins sql_telegram_NAME.

-- name: about
-- The last message that is about something: $1 bot, $2 chat, $3 reference; 0: none.
select coalesce(pawl.telegram_about($1::bigint, $2::bigint, $3::text), 0) as value

-- name: ask_limited
-- The server answered 429 to a question: $1 bot, $2 the time in ms that it said, 0: none. The time to wait in ms.
select pawl.telegram_ask_limited($1::bigint, $2::bigint) as value

-- name: delivered
-- A message was sent: $1 bot, $2 chat, $3 message, $4 reference or null.
select pawl.telegram_delivered($1::bigint, $2::bigint, $3::bigint, $4::text)::text as value

-- name: file
-- The file of a message: $1 bot, $2 command; null: it has none of its own.
select pawl.telegram_file($1::bigint, $2::text::uuid) as value

-- name: lease
-- Renew or take the lease of a bot: $1 bot, $2 holder, $3 milliseconds, $4 most messages to count. Columns: is_held,
-- username, waiting.
select l.is_held, l.username, l.waiting from pawl.telegram_lease($1::bigint, $2::text::uuid, $3::integer, $4::integer) l

-- name: lease_release
-- Give the lease back: $1 holder.
select pawl.task_release($1::text::uuid)::text as value

-- name: limited
-- The server answered 429: $1 bot, $2 chat, $3 the time in ms that it said, 0: none. The time to wait in ms.
select pawl.telegram_limited($1::bigint, $2::bigint, $3::bigint) as value

-- name: member_forget
-- The status of a member has changed: $1 bot, $2 chat, $3 user.
select pawl.telegram_member_forget($1::bigint, $2::bigint, $3::bigint)::text as value

-- name: member_get
-- What is known about a member: $1 bot, $2 chat, $3 user.
-- Columns: status (null: not known), may_ask (the server).
select m.status, m.may_ask from pawl.telegram_member_get($1::bigint, $2::bigint, $3::bigint) m

-- name: member_put
-- Keep what the server said about a member: $1 bot, $2 chat, $3 user, $4 status.
select pawl.telegram_member_put($1::bigint, $2::bigint, $3::bigint, $4::text)::text as value

-- name: message
-- The message that a command of the outbox has sent: $1 bot, $2 command; 0: none
select coalesce(pawl.telegram_message($1::bigint, $2::text::uuid), 0)::bigint as value

-- name: moved
-- A group has become a supergroup: $1 bot, $2 old, $3 new chat.
select pawl.telegram_moved($1::bigint, $2::bigint, $3::bigint)::text as value

-- name: name
-- The bot's username, as getMe said: $1 bot, $2 name.
select pawl.telegram_name($1::bigint, $2::text)::text as value

-- name: pace
-- When may a message be sent: $1 bot, $2 chat, $3 is it a confirmation, $4 ms per message of a chat, $5 messages per
-- minute of a group, $6 per second of all, $7 the longest wait for a reserved time in ms. Columns: chat_id (where it is
-- now), wait_ms, is_reserved, refusals, is_expired (never).
select p.chat_id, p.wait_ms, p.is_reserved, p.refusals, false as is_expired
from pawl.telegram_pace_message($1::bigint, $2::bigint, $3::boolean, $4::integer, $5::integer, $6::integer,
                                $7::integer) p

-- name: pace_answer
-- When may an answer to a button press be sent: $1 bot, $2 its command, $3 messages per second of all, $4 the longest
-- wait for a reserved time in ms. Columns: chat_id (0), wait_ms, is_reserved, refusals, is_expired (it is dropped).
select p.chat_id, p.wait_ms, p.is_reserved, p.refusals, p.is_expired
from pawl.telegram_pace_answer($1::bigint, $2::bigint, $3::integer, $4::integer) p

-- name: pace_ask
-- When may a question be asked, which has no chat and no answer that anyone sees: $1 bot, $2 messages per second of
-- all, $3 the longest wait for a reserved time in ms. Columns: wait_ms, is_reserved.
select p.wait_ms, p.is_reserved from pawl.telegram_pace($1::bigint, '{0}', 0, 1, $2::integer, $3::integer) p

-- name: prune
-- Delete old rows: $1 days, $2 limit; how many
select pawl.telegram_prune($1::integer, $2::integer) as value

-- name: put
-- Queue messages: $1 bot, $2 ids, $3 chats, $4 types, $5 payloads, $6 how many may be queued; how many were refused
select pawl.telegram_put($1::bigint, $2::uuid[], $3::bigint[], $4::text[], $5::jsonb[], $6::integer)::bigint as value

-- name: reference
-- What a message is about: $1 bot, $2 chat, $3 message.
select pawl.telegram_reference($1::bigint, $2::bigint, $3::bigint) as value

-- name: superseded
-- Does a later edit of the same message wait: $1 bot, $2 command, $3 message
select pawl.telegram_superseded($1::bigint, $2::bigint, $3::bigint)::integer::bigint as value

-- name: waiting
-- How many messages wait: $1 bot, $2 the most to count
select pawl.telegram_waiting($1::bigint, $2::integer)::bigint as value
