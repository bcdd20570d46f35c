-- 0051_telegram_pace_all.sql - which chats of a bot got a 429 within a second: several of them mean the bot itself.

alter table pawl.telegram_pace
  add column limited_since timestamptz not null default '-infinity',
  add column limited_chats bigint[] not null default '{}';
