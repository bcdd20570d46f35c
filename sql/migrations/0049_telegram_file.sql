-- 0049_telegram_file.sql - files of the bot's messages, apart from the messages, which are kept for weeks and do not change.

create table pawl.telegram_file (
  bot_id bigint not null,
  command_id uuid not null, -- of the outbox, which sends it
  file text not null, -- base64
  primary key (bot_id, command_id)
);
alter table pawl.telegram_file alter column file set storage external; -- a PNG cannot be compressed again
