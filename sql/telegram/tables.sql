-- tables.sql - what all pods of a bot share: its name, how fast it may send, where groups have moved, what messages are
-- about.
--
-- Updates and outgoing messages are commands of the bus; see src/telegram/outbox.h. How often rows change:
--
--     telegram_bot     one row per bot
--     telegram_pace    one row per bot; updated with each message that is sent, and by answers 429
--     telegram_chat    one row per chat that the bot has sent to; updated with each message, deleted after a quiet day
--     telegram_member  one row per member that was asked about; kept for minutes
--     telegram_sent    one row per message that replies may refer to; insert only, deleted by age
--     telegram_file    one row per file of a message that is not sent yet; insert and delete

create table pawl.telegram_bot (
  bot_id bigint primary key,
  username text not null -- as getMe said last
);

create table pawl.telegram_pace (
  bot_id bigint primary key,
  next_free timestamptz not null, -- no message before
  ask_free timestamptz not null default '-infinity', -- no question about a member before, after a 429
  ask_refusals integer not null default 0, -- answers 429 in a row
  -- The chats that got a 429 within a second: several of them mean the bot itself.
  limited_since timestamptz not null default '-infinity',
  limited_chats bigint[] not null default '{}'
) with (fillfactor = 50);

create table pawl.telegram_chat (
  bot_id bigint not null,
  chat_id bigint not null,
  next_free timestamptz not null, -- by the chat's own rate, and after a 429
  recent timestamptz[] not null default '{}', -- of a group: its messages of the last minute, oldest first
  refusals integer not null default 0, -- answers 429 in a row
  moved_to bigint, -- the supergroup that the group has become
  primary key (bot_id, chat_id)
) with (fillfactor = 70);
create index telegram_chat_free on pawl.telegram_chat (next_free);

-- So that a user who repeats a command asks the server once.
create table pawl.telegram_member (
  bot_id bigint not null,
  chat_id bigint not null,
  user_id bigint not null,
  status text not null, -- as getChatMember names it; '': the server did not say
  until timestamptz not null, -- then it is deleted
  primary key (bot_id, chat_id, user_id)
);
create index telegram_member_until on pawl.telegram_member (until);

-- What messages are about, for replies to them.
create table pawl.telegram_sent (
  bot_id bigint not null,
  chat_id bigint not null,
  message_id bigint not null,
  reference text not null,
  sent_at timestamptz not null,
  primary key (bot_id, chat_id, message_id)
);
create index telegram_sent_at on pawl.telegram_sent (sent_at);
-- Which message is about a match, so that its undo can edit it.
create index telegram_sent_reference on pawl.telegram_sent (bot_id, chat_id, reference);

-- Apart from the messages, which are kept for weeks and do not change.
create table pawl.telegram_file (
  bot_id bigint not null,
  command_id uuid not null, -- of the outbox, which sends it
  file text not null, -- base64
  primary key (bot_id, command_id)
);
alter table pawl.telegram_file alter column file set storage external; -- a PNG cannot be compressed again
