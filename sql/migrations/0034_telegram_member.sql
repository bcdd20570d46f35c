-- 0034_telegram_member.sql - what the server said about members of chats, and since when it wants fewer questions.

alter table pawl.telegram_pace
  add column ask_free timestamptz not null default '-infinity', -- no question about a member before, after a 429
  add column ask_refusals integer not null default 0; -- answers 429 in a row

-- Kept for some minutes, so that a user who repeats a command asks the server once. Deleted after until.
create table pawl.telegram_member (
  bot_id bigint not null,
  chat_id bigint not null,
  user_id bigint not null,
  status text not null, -- as getChatMember names it; '': the server did not say
  until timestamptz not null,
  primary key (bot_id, chat_id, user_id)
);
create index telegram_member_until on pawl.telegram_member (until);
