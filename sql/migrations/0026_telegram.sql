-- 0026_telegram.sql - what all processes of a bot share: who polls, how fast it may send, where groups have moved, what messages are about.
--
-- Updates and outgoing messages are commands of the bus; see src/telegram/outbox.h.

-- One row per bot. A process that holds the lease polls, or registers the webhook.
create table pawl.telegram_bot (
  bot_id bigint primary key,
  holder uuid,
  until timestamptz not null, -- end of the lease
  username text -- as getMe said last
) with (fillfactor = 50);

-- The next time at which any message of the bot may be sent.
create table pawl.telegram_pace (
  bot_id bigint primary key,
  next_free timestamptz not null
) with (fillfactor = 50);

-- One row per chat that the bot has sent to; deleted when it is a day old and says nothing any more.
create table pawl.telegram_chat (
  bot_id bigint not null,
  chat_id bigint not null,
  next_free timestamptz not null,  -- by the chat's own rate, and after a 429
  recent timestamptz[] not null default '{}', -- of a group: its messages of the last minute, oldest first
  refusals integer not null default 0, -- answers 429 in a row
  moved_to bigint, -- the supergroup that the group has become
  primary key (bot_id, chat_id)
) with (fillfactor = 70);
create index telegram_chat_free on pawl.telegram_chat (next_free);

-- What messages are about, for replies to them. Deleted by age.
create table pawl.telegram_sent (
  bot_id bigint not null,
  chat_id bigint not null,
  message_id bigint not null,
  reference text not null,
  sent_at timestamptz not null,
  primary key (bot_id, chat_id, message_id)
);
create index telegram_sent_at on pawl.telegram_sent (sent_at);
