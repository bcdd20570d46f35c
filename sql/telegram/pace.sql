-- pace.sql - the rates at which a bot may send, over all pods.
--
-- A chat gets one message per p_chat_ms, a group p_group_max per minute, all chats together p_all_max per second. A message that may be sent
-- within p_wait_max_ms gets its time reserved, and the process waits for it. One that may not gets the time to wait, and reserves
-- nothing. Since one message of a chat is sent at a time (order keys), that time is right unless others fill the bot's own rate.
-- A 429 moves the chat's next time to where the server says; other chats are not affected, unless three chats get one within a second: then it is
-- the bot itself that the server limits, and all wait. A time of more than a minute is that of a chat. Answers to button presses are chat 0: they have
-- no rate of their own, count for the bot's, and a 429 for one of them holds up all.
-- Lock order: rows of chats by id, then the bot's row of pawl.telegram_pace. All are held until the end of the statement.
-- Errors: TG001 an argument is missing or out of range.

-- Lock the rows of these chats and then the bot's, with a new row for each that has none. Returns when the bot may send again.
create or replace function pawl.telegram_pace_lock (p_bot_id bigint, p_chats bigint[])
  returns timestamptz
  language plpgsql
as $$
declare
  v_next_free timestamptz;
begin
  insert into pawl.telegram_chat (bot_id, chat_id, next_free)
  select p_bot_id, n.chat_id, '-infinity'
  from (select distinct pawl.telegram_chat_now(p_bot_id, u.chat_id) as chat_id from unnest(p_chats) u (chat_id)) n
  order by n.chat_id
  on conflict (bot_id, chat_id) do nothing;
  perform from pawl.telegram_chat c
  where c.bot_id = p_bot_id
    and c.chat_id in (select pawl.telegram_chat_now(p_bot_id, u.chat_id) from unnest(p_chats) u (chat_id))
  order by c.chat_id for update;
  insert into pawl.telegram_pace (bot_id, next_free)
  select p_bot_id, '-infinity' where not exists (select from pawl.telegram_pace a where a.bot_id = p_bot_id)
  on conflict (bot_id) do nothing;
  select a.next_free into v_next_free from pawl.telegram_pace a where a.bot_id = p_bot_id for update;
  return v_next_free;
end
$$;

-- A row per chat, in order. chat_id: where it is now. wait_ms: until it may be sent. is_reserved: then this message may be sent.
create or replace function pawl.telegram_pace (
  p_bot_id bigint, p_chats bigint[], p_chat_ms integer, p_group_max integer, p_all_max integer, p_wait_max_ms integer)
  returns table (ord integer, chat_id bigint, wait_ms bigint, is_reserved boolean, refusals integer)
  language plpgsql security definer set search_path = pawl, pg_temp
  set plan = keyed_cached
as $$
#variable_conflict use_column
declare
  v_now timestamptz;
  v_all timestamptz;
  v_at timestamptz;
  v_recent timestamptz[];
  v_latest timestamptz; -- what is reserved for later was reserved by a clock that was ahead. A 429 may ask for any time
  v_item record;
  v_row pawl.telegram_chat;
begin
  perform pawl.array_check('chats', p_chats, cardinality(p_chats), 'TG001');
  if (p_bot_id > 0 and p_chat_ms between 0 and 60000 and p_group_max between 1 and 1000 and p_all_max between 1 and 10000
      and p_wait_max_ms between 0 and 60000 and cardinality(p_chats) <= 1000) is not true or array_position(p_chats, null) is not null then
    raise exception 'rates must be positive, wait_max_ms from 0 to 60000, and chats at most 1000 without null' using errcode = 'TG001';
  end if;
  v_all := pawl.telegram_pace_lock(p_bot_id, p_chats);
  v_now := pawl.now(); -- behind the locks
  v_latest := v_now + (p_wait_max_ms + p_chat_ms) * interval '1 ms' + interval '1 min';
  if v_all > v_latest then
    v_all := v_now;
  end if;
  for v_item in
    select u.ord::integer as ord, pawl.telegram_chat_now(p_bot_id, u.chat_id) as chat_id
    from unnest(p_chats) with ordinality u (chat_id, ord) order by u.ord
  loop
    select c.* into v_row from pawl.telegram_chat c where c.bot_id = p_bot_id and c.chat_id = v_item.chat_id;
    v_recent := array(select r from unnest(v_row.recent) r where r > v_now - interval '1 min' and r <= v_latest order by r);
    v_all := greatest(v_now, v_all);
    v_at := case when v_row.next_free > v_latest and v_row.refusals = 0 then v_all else greatest(v_all, v_row.next_free) end;
    if v_item.chat_id < 0 and cardinality(v_recent) >= p_group_max then
      v_at := greatest(v_at, v_recent[cardinality(v_recent) - p_group_max + 1] + interval '1 min');
    end if;
    ord := v_item.ord;
    chat_id := v_item.chat_id;
    refusals := v_row.refusals;
    wait_ms := ceil(extract(epoch from v_at - v_now) * 1000);
    is_reserved := wait_ms <= p_wait_max_ms;
    if is_reserved then
      v_all := v_all + interval '1 s' / p_all_max; -- not from v_at: a chat that waits for its own time delays no other
      update pawl.telegram_chat c
      set next_free = v_at + p_chat_ms * interval '1 ms',
          recent = case when v_item.chat_id < 0 then v_recent || v_at else '{}' end
      where c.bot_id = p_bot_id and c.chat_id = v_item.chat_id;
    end if;
    return next;
  end loop;
  update pawl.telegram_pace a set next_free = v_all where a.bot_id = p_bot_id and a.next_free <> v_all;
end
$$;

-- How long the other messages of a chat wait for its confirmations (outbox.sql): until the first of these is due, and one interval more. Null:
-- none waits.
create or replace function pawl.telegram_first_ms (p_bot_id bigint, p_chat_id bigint, p_chat_ms integer)
  returns bigint
  language plpgsql stable set search_path = pawl, pg_temp
  set plan = keyed_cached
as $$
declare
  v_domain integer := pawl.domain_find(pawl.telegram_outbox(p_bot_id));
  v_key text := pawl.telegram_key(p_chat_id, 6::smallint);
  v_id bigint := (select t.id from pawl.order_turn t where t.domain_id = v_domain and t.order_key = v_key);
  v_due timestamptz;
begin
  if v_id is null and not exists (select from pawl.ready r where r.domain_id = v_domain and r.order_key = v_key) then
    return null;
  end if;
  v_due := (select d.due from pawl.delayed d where d.id = v_id);
  return greatest(p_chat_ms, 200) + coalesce(greatest(0, ceil(extract(epoch from v_due - pawl.now()) * 1000)), 0);
end
$$;

-- As pawl.telegram_pace, for one message. p_is_first: it is a confirmation; all others wait while one of the chat does.
create or replace function pawl.telegram_pace_message (
  p_bot_id bigint, p_chat_id bigint, p_is_first boolean, p_chat_ms integer, p_group_max integer, p_all_max integer, p_wait_max_ms integer)
  returns table (chat_id bigint, wait_ms bigint, is_reserved boolean, refusals integer)
  language plpgsql security definer set search_path = pawl, pg_temp
  set plan = keyed_cached
as $$
#variable_conflict use_column
begin
  if p_is_first is null or p_chat_id is null then
    raise exception 'chat_id and is_first must be given' using errcode = 'TG001';
  end if;
  chat_id := pawl.telegram_chat_now(p_bot_id, p_chat_id);
  wait_ms := case when not p_is_first then pawl.telegram_first_ms(p_bot_id, chat_id, p_chat_ms) end;
  is_reserved := false;
  refusals := 0;
  if wait_ms is null then
    select t.chat_id, t.wait_ms, t.is_reserved, t.refusals into chat_id, wait_ms, is_reserved, refusals
    from pawl.telegram_pace(p_bot_id, array[p_chat_id], p_chat_ms, p_group_max, p_all_max, p_wait_max_ms) t;
  end if;
  return next;
end
$$;

-- As pawl.telegram_pace, for an answer to a button press. p_id: its command. is_expired: nothing is reserved, because its minute would be over
-- before its time; a messenger shows an answer for seconds after the press, if at all.
create or replace function pawl.telegram_pace_answer (p_bot_id bigint, p_id bigint, p_all_max integer, p_wait_max_ms integer)
  returns table (chat_id bigint, wait_ms bigint, is_reserved boolean, refusals integer, is_expired boolean)
  language plpgsql security definer set search_path = pawl, pg_temp
  set plan = keyed_cached
as $$
#variable_conflict use_column
declare
  v_until timestamptz := (select c.created_at from pawl.command c where c.id = p_id) + interval '1 min';
begin
  if p_id is null then
    raise exception 'id must be given' using errcode = 'TG001';
  end if;
  chat_id := 0;
  wait_ms := 0;
  is_reserved := false;
  refusals := 0;
  is_expired := coalesce(v_until < pawl.now(), false);
  if not is_expired then
    select t.chat_id, t.wait_ms, t.is_reserved, t.refusals into chat_id, wait_ms, is_reserved, refusals
    from pawl.telegram_pace(p_bot_id, '{0}', 0, 1, p_all_max, p_wait_max_ms) t;
    is_expired := coalesce(not is_reserved and v_until < pawl.now() + wait_ms * interval '1 ms', false);
  end if;
  return next;
end
$$;

-- How long to wait after a 429. p_retry_ms: what the server said; 0: nothing, so it is 1, 2, 4 ... 60 s for one refusal after the other.
create or replace function pawl.telegram_wait_ms (p_retry_ms bigint, p_refusals integer)
  returns bigint
  language sql immutable
as $$
  select case when p_retry_ms > 0 then p_retry_ms else least(60000, 1000 * (1::bigint << least(p_refusals - 1, 6))) end
$$;

-- The server answered 429. p_chat_id: 0 for an answer to a button press. p_retry_ms: as of pawl.telegram_wait_ms.
-- The chat gets nothing before that, and after the third chat within a second no other one does. Returns the time in milliseconds.
create or replace function pawl.telegram_limited (p_bot_id bigint, p_chat_id bigint, p_retry_ms bigint)
  returns bigint
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
declare
  v_now timestamptz := pawl.now();
  v_wait_ms bigint;
  v_pace pawl.telegram_pace;
begin
  if (p_bot_id > 0 and p_chat_id is not null and p_retry_ms between 0 and 315360000000) is not true then
    raise exception 'bot_id must be from 1, chat_id given and retry_ms from 0 to 315360000000' using errcode = 'TG001';
  end if;
  insert into pawl.telegram_chat as c (bot_id, chat_id, next_free, refusals) values (p_bot_id, p_chat_id, v_now, 1)
  on conflict (bot_id, chat_id) do update set refusals = least(c.refusals + 1, 1000)
  returning pawl.telegram_wait_ms(p_retry_ms, c.refusals) into v_wait_ms;
  update pawl.telegram_chat c set next_free = greatest(c.next_free, v_now + v_wait_ms * interval '1 ms')
  where c.bot_id = p_bot_id and c.chat_id = p_chat_id;
  insert into pawl.telegram_pace (bot_id, next_free)
  select p_bot_id, '-infinity' where not exists (select from pawl.telegram_pace a where a.bot_id = p_bot_id)
  on conflict (bot_id) do nothing;
  select a.* into v_pace from pawl.telegram_pace a where a.bot_id = p_bot_id for update;
  if v_now between v_pace.limited_since and v_pace.limited_since + interval '1 s' then
    v_pace.limited_chats := array(select distinct c from unnest(v_pace.limited_chats || p_chat_id) c);
  else
    v_pace.limited_since := v_now;
    v_pace.limited_chats := array[p_chat_id];
  end if;
  update pawl.telegram_pace a
  set limited_since = v_pace.limited_since, limited_chats = v_pace.limited_chats[:3],
      next_free = case when cardinality(v_pace.limited_chats) >= 3 and v_wait_ms <= 60000
        then greatest(a.next_free, v_now + v_wait_ms * interval '1 ms') else a.next_free end
  where a.bot_id = p_bot_id;
  return v_wait_ms;
end
$$;
