-- outbox.sql - outgoing messages of a bot: queued within a limit, in the order of their chats; what they are about; where groups have moved.
--
-- Invariants: what is refused is the end of a list, or of what a list has for a chat, never the middle, so that what a chat gets has no holes. An id that was queued before
-- is queued once. Of two transactions at the same time neither sees what the other queues, so the limit may be exceeded by what they
-- queue together.
-- Lock order: as pawl.send_items.
-- Errors: TG001 an argument is missing or out of range; QU001 of pawl.send_items.

create or replace function pawl.telegram_outbox (p_bot_id bigint)
  returns text
  language sql immutable
as $$
  select 'telegram:' || p_bot_id || ':outbox'
$$;

-- How many messages wait, counted up to p_max. Neither those that are being sent nor answers to button presses (priority 9) count.
create or replace function pawl.telegram_waiting (p_bot_id bigint, p_max integer)
  returns integer
  language plpgsql stable security definer set search_path = pawl, pg_temp
  set plan = keyed_cached
as $$
declare
  v_domain integer := pawl.domain_find(pawl.telegram_outbox(p_bot_id));
begin
  return least(p_max,
    (select count(*) from (select from pawl.ready r where r.domain_id = v_domain and r.priority < 9 limit p_max) q) +
    (select count(*) from (select from pawl.delayed d where d.domain_id = v_domain and d.priority < 9 limit p_max) q) +
    (select count(*) from (select from pawl.parked p where p.domain_id = v_domain limit p_max) q));
end
$$;

-- How many messages of one chat may wait: a chat that is slow, or asks for more than it may get, leaves the rest of the outbox to others.
create or replace function pawl.telegram_share ()
  returns integer
  language sql immutable
as $$
  select 250
$$;

-- How many messages of a chat may still be queued.
create or replace function pawl.telegram_share_left (p_domain_id integer, p_key text)
  returns integer
  language plpgsql stable set search_path = pawl, pg_temp
  set plan = keyed_cached
as $$
begin
  return pawl.telegram_share() -
    (select count(*) from (select from pawl.ready r where r.domain_id = p_domain_id and r.order_key = p_key limit pawl.telegram_share()) q) -
    (select count(*) from (select from pawl.parked p where p.domain_id = p_domain_id and p.order_key = p_key limit pawl.telegram_share()) q);
end
$$;

-- How many answers to button presses may still be queued: 200 may wait, whatever waits besides them.
create or replace function pawl.telegram_answers_left (p_domain_id integer)
  returns integer
  language plpgsql stable set search_path = pawl, pg_temp
  set plan = keyed_cached
as $$
begin
  return 200 -
    (select count(*) from (select from pawl.ready r where r.domain_id = p_domain_id and r.priority = 9 limit 200) q) -
    (select count(*) from (select from pawl.delayed d where d.domain_id = p_domain_id and d.priority = 9 limit 200) q);
end
$$;

-- Where a chat is now: a group may have become a supergroup.
create or replace function pawl.telegram_chat_now (p_bot_id bigint, p_chat_id bigint)
  returns bigint
  language sql stable
as $$
  select coalesce(
    (select c.moved_to from pawl.telegram_chat c where c.bot_id = p_bot_id and c.chat_id = p_chat_id), p_chat_id)
$$;

-- Queue messages. p_chats: 0 for an answer to a button press, which has no place in a chat, is first in the queue and has one attempt.
-- p_capacity: how many may be queued, answers not counted; of each chat no more than its share, and of answers no more than
-- pawl.telegram_answers_left. Returns how many were refused: the last ones, the last ones of a chat, and the last answers.
create or replace function pawl.telegram_put (p_bot_id bigint, p_ids uuid[], p_chats bigint[], p_types text[], p_payloads jsonb[], p_capacity integer)
  returns integer
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
declare
  v_count integer := cardinality(p_ids);
  v_domain integer := pawl.domain_find(pawl.telegram_outbox(p_bot_id));
  v_ids uuid[];
  v_keys text[];
  v_types text[];
  v_payloads jsonb[];
  v_priorities smallint[];
  v_attempts smallint[];
  v_answers integer := 0;
begin
  perform pawl.array_check('ids', p_ids, v_count, 'TG001'), pawl.array_check('chats', p_chats, v_count, 'TG001'),
          pawl.array_check('types', p_types, v_count, 'TG001'), pawl.array_check('payloads', p_payloads, v_count, 'TG001');
  if (p_bot_id > 0 and p_capacity >= 0 and v_count <= 10000) is not true or array_position(p_ids, null) is not null
     or array_position(p_chats, null) is not null then
    raise exception 'bot_id must be from 1, capacity from 0, and ids and chats must have at most 10000 elements without null'
      using errcode = 'TG001';
  end if;
  if 0 = any (p_chats) then
    v_answers := pawl.telegram_answers_left(v_domain);
  end if;
  select array_agg(q.id order by q.ord), array_agg(q.key order by q.ord), array_agg(q.type order by q.ord),
         array_agg(q.payload order by q.ord), array_agg(q.priority order by q.ord),
         array_agg(case when q.chat_id = 0 then 1 else 20 end::smallint order by q.ord)
  into v_ids, v_keys, v_types, v_payloads, v_priorities, v_attempts
  from (
    select s.*, case when s.chat_id = 0 then 9 else 4 end::smallint as priority,
           count(*) filter (where s.chat_id <> 0) over (order by s.ord) as number
    from (select u.*, n.key, row_number() over (partition by n.key order by u.ord) as chat_number
          from unnest(p_ids, p_chats, p_types, p_payloads) with ordinality u (id, chat_id, type, payload, ord),
          lateral (select case when u.chat_id <> 0 then pawl.telegram_chat_now(p_bot_id, u.chat_id)::text end as key) n) s
    left join (select k.key, pawl.telegram_share_left(v_domain, k.key) as share
               from (select distinct pawl.telegram_chat_now(p_bot_id, u.chat_id)::text as key from unnest(p_chats) u (chat_id) where u.chat_id <> 0) k) l
      on l.key = s.key
    where s.chat_number <= case when s.chat_id = 0 then v_answers else l.share end -- answers have no key, so they are numbered together
  ) q
  where q.chat_id = 0 or q.number <= p_capacity;
  if v_ids is not null then
    perform from pawl.send_items(false, pawl.telegram_outbox(p_bot_id), v_types, v_payloads, v_ids, null, v_priorities,
      v_attempts, null, null, null, null, v_keys);
  end if;
  return v_count - coalesce(cardinality(v_ids), 0);
end
$$;

-- A group has become a supergroup: what is queued for it goes there from now on.
create or replace function pawl.telegram_moved (p_bot_id bigint, p_from bigint, p_to bigint)
  returns void
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
begin
  if (p_bot_id > 0 and p_from <> 0 and p_to <> 0 and p_from <> p_to) is not true then
    raise exception 'bot_id must be from 1, from and to must be two chats' using errcode = 'TG001';
  end if;
  insert into pawl.telegram_chat as c (bot_id, chat_id, next_free, moved_to) values (p_bot_id, p_from, pawl.now(), p_to)
  on conflict (bot_id, chat_id) do update set moved_to = excluded.moved_to where c.moved_to is distinct from excluded.moved_to;
end
$$;

-- A message was sent: what it is about (null: nothing), and that the chat accepts messages again.
create or replace function pawl.telegram_delivered (p_bot_id bigint, p_chat_id bigint, p_message_id bigint, p_reference text)
  returns void
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
begin
  update pawl.telegram_chat c set refusals = 0 where c.bot_id = p_bot_id and c.chat_id = p_chat_id and c.refusals > 0;
  if p_reference is not null and p_message_id > 0 then
    insert into pawl.telegram_sent (bot_id, chat_id, message_id, reference, sent_at)
    values (p_bot_id, p_chat_id, p_message_id, left(p_reference, 100), pawl.now())
    on conflict (bot_id, chat_id, message_id) do nothing;
  end if;
end
$$;

-- The message that a command of the outbox has sent; null: none, or it is not known.
create or replace function pawl.telegram_message (p_bot_id bigint, p_command_id uuid)
  returns bigint
  language sql stable security definer set search_path = pawl, pg_temp
as $$
  select case when jsonb_typeof(o.result->'message_id') = 'number' then (o.result->'message_id')::bigint end
  from pawl.command c join pawl.outcome o on o.id = c.id
  where c.command_id = p_command_id and c.domain_id = pawl.domain_find(pawl.telegram_outbox(p_bot_id)) and o.status = 'COMPLETED'
$$;

create or replace function pawl.telegram_reference (p_bot_id bigint, p_chat_id bigint, p_message_id bigint)
  returns text
  language sql stable security definer set search_path = pawl, pg_temp
as $$
  select s.reference from pawl.telegram_sent s
  where s.bot_id = p_bot_id and s.chat_id = p_chat_id and s.message_id = p_message_id
$$;

-- Delete at most p_limit references older than p_days, as many chats that have had no message for a day, and as many statuses of members whose time
-- is over. Returns how many rows.
create or replace function pawl.telegram_prune (p_days integer, p_limit integer)
  returns bigint
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
declare
  v_sent bigint;
  v_chats bigint;
  v_members bigint;
begin
  if (p_days between 1 and 36500 and p_limit between 1 and 100000) is not true then
    raise exception 'days must be from 1 to 36500 and limit from 1 to 100000' using errcode = 'TG001';
  end if;
  delete from pawl.telegram_sent s where (s.bot_id, s.chat_id, s.message_id) in (
    select o.bot_id, o.chat_id, o.message_id from pawl.telegram_sent o
    where o.sent_at < pawl.now() - p_days * interval '1 day' order by o.sent_at limit p_limit for update skip locked);
  get diagnostics v_sent = row_count;
  delete from pawl.telegram_chat c where (c.bot_id, c.chat_id) in (
    select o.bot_id, o.chat_id from pawl.telegram_chat o
    where o.next_free < pawl.now() - interval '1 day' and o.moved_to is null
    order by o.next_free limit p_limit for update skip locked);
  get diagnostics v_chats = row_count;
  delete from pawl.telegram_member m where (m.bot_id, m.chat_id, m.user_id) in (
    select o.bot_id, o.chat_id, o.user_id from pawl.telegram_member o
    where o.until < pawl.now() order by o.until limit p_limit for update skip locked);
  get diagnostics v_members = row_count;
  return v_sent + v_chats + v_members;
end
$$;
