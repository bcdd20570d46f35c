-- member.sql - the status of users in chats, as the server said it; and when it may be asked again.
--
-- A 429 for one question holds up the questions of all processes of the bot, and neither messages nor answers to button presses.
-- Lock order: a row of pawl.telegram_member, then the bot's row of pawl.telegram_pace.
-- Errors: TG001 an argument is missing or out of range.

-- status: null, it is not known; '', the server was asked and did not say. may_ask: no 429 holds up questions.
create or replace function pawl.telegram_member_get (p_bot_id bigint, p_chat_id bigint, p_user_id bigint)
  returns table (status text, may_ask boolean)
  language sql stable security definer set search_path = pawl, pg_temp
as $$
  select (select m.status from pawl.telegram_member m
          where m.bot_id = p_bot_id and m.chat_id = p_chat_id and m.user_id = p_user_id and m.until > pawl.now()),
         not exists (select from pawl.telegram_pace a where a.bot_id = p_bot_id and a.ask_free > pawl.now())
$$;

-- The server was asked. A status is kept for two minutes, '' for ten seconds.
create or replace function pawl.telegram_member_put (p_bot_id bigint, p_chat_id bigint, p_user_id bigint, p_status text)
  returns void
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
begin
  if (p_bot_id > 0 and p_chat_id <> 0 and p_user_id <> 0 and length(p_status) <= 64) is not true then
    raise exception 'bot_id must be from 1, chat_id and user_id other than 0, and status of at most 64 characters' using errcode = 'TG001';
  end if;
  insert into pawl.telegram_member (bot_id, chat_id, user_id, status, until)
  values (p_bot_id, p_chat_id, p_user_id, p_status, pawl.now() + case when p_status = '' then interval '10 s' else interval '2 min' end)
  on conflict (bot_id, chat_id, user_id) do update set status = excluded.status, until = excluded.until;
  update pawl.telegram_pace a set ask_refusals = 0 where a.bot_id = p_bot_id and a.ask_refusals > 0 and a.ask_free <= pawl.now();
end
$$;

-- The user's status has changed.
create or replace function pawl.telegram_member_forget (p_bot_id bigint, p_chat_id bigint, p_user_id bigint)
  returns void
  language sql security definer set search_path = pawl, pg_temp
as $$
  delete from pawl.telegram_member m where m.bot_id = p_bot_id and m.chat_id = p_chat_id and m.user_id = p_user_id
$$;

-- The server answered 429 to a question. p_retry_ms: as of pawl.telegram_wait_ms. Returns the time in milliseconds.
create or replace function pawl.telegram_ask_limited (p_bot_id bigint, p_retry_ms bigint)
  returns bigint
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
declare
  v_now timestamptz := pawl.now();
  v_wait_ms bigint;
begin
  if (p_bot_id > 0 and p_retry_ms between 0 and 315360000000) is not true then
    raise exception 'bot_id must be from 1 and retry_ms from 0 to 315360000000' using errcode = 'TG001';
  end if;
  insert into pawl.telegram_pace as a (bot_id, next_free, ask_refusals) values (p_bot_id, '-infinity', 1)
  on conflict (bot_id) do update set ask_refusals = least(a.ask_refusals + 1, 1000)
  returning pawl.telegram_wait_ms(p_retry_ms, a.ask_refusals) into v_wait_ms;
  update pawl.telegram_pace a set ask_free = greatest(a.ask_free, v_now + v_wait_ms * interval '1 ms') where a.bot_id = p_bot_id;
  return v_wait_ms;
end
$$;
