-- outbox.sql - outgoing messages of a bot: queued within a limit, in the order of their chats; what they are about; where groups have moved.
--
-- Invariants: what is refused is the end of a list, or of what a list has for a chat, never the middle, so that what a chat gets has no holes. An id that was queued before
-- is queued once. Of two transactions at the same time neither sees what the other queues, so the limit may be exceeded by what they
-- queue together.
-- Lock order: as pawl.send_items.
-- Errors: TG001 an argument is missing or out of range; TG002 a confirmation has no place; QU001 of pawl.send_items.

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
  if (p_bot_id > 0 and p_max >= 0) is not true then
    raise exception 'bot_id must be from 1 and max from 0' using errcode = 'TG001';
  end if;
  return least(p_max,
    (select count(*) from (select from pawl.ready r where r.domain_id = v_domain and r.priority < 9 limit p_max) q) +
    (select count(*) from (select from pawl.delayed d where d.domain_id = v_domain and d.priority < 9 limit p_max) q) +
    (select count(*) from (select from pawl.parked p where p.domain_id = v_domain limit p_max) q));
end
$$;

-- How many messages of a class and chat may wait: a chat that is slow, or asks for more than it may get, leaves the rest of the outbox to others.
create or replace function pawl.telegram_share ()
  returns integer
  language sql immutable
as $$
  select 250
$$;

-- The class of a message, which is its priority. Answers to button presses (9) are not ordered. Confirmations of matches and undos (6)
-- have order keys and shares of their own, so that no other message delays them or takes their place. A notice that the chat asks too
-- much (5) is sent beside the answers that wait. All others are 4.
create or replace function pawl.telegram_class (p_chat_id bigint, p_payload jsonb)
  returns smallint
  language sql immutable
as $$
  select case when p_chat_id = 0 then 9 when p_payload->'first' = 'true' then 6 when p_payload->'busy' = 'true' then 5 else 4 end::smallint
$$;

create or replace function pawl.telegram_key (p_chat_id bigint, p_class smallint)
  returns text
  language sql immutable
as $$
  select case when p_chat_id <> 0 then p_chat_id || case p_class when 6 then ':first' when 5 then ':busy' else '' end end
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

-- How many messages of a priority may still be queued: p_most may wait, beside any number of others. 200 answers to button presses (9); 1,000
-- confirmations (6), so no mailing of an application and no flood of reads keeps a match from being registered.
create or replace function pawl.telegram_priority_left (p_domain_id integer, p_priority integer, p_most integer)
  returns integer
  language plpgsql stable set search_path = pawl, pg_temp
  set plan = keyed_cached
as $$
begin
  return p_most -
    (select count(*) from (select from pawl.ready r where r.domain_id = p_domain_id and r.priority = p_priority limit p_most) q) -
    (select count(*) from (select from pawl.delayed d where d.domain_id = p_domain_id and d.priority = p_priority limit p_most) q);
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
-- p_capacity: how many may be queued, answers and confirmations not counted; of each class and chat no more than its share, of answers and
-- confirmations no more than pawl.telegram_priority_left. A list with a notice for a chat (class 5) has its other messages to that chat refused while ten wait, edits
-- and confirmations excepted, and the notice is queued then, and only then. A file has four attempts, so that one that the
-- server cannot take does not hold up its chat; it is stored apart from its message, until that has ended. Returns how many were refused: the last ones, the last ones of a chat, and the last
-- answers. Confirmations are never refused in part: TG002.
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
  v_priorities integer[];
  v_attempts integer[];
  v_answers integer := 0;
  v_confirmations integer := 0;
  v_refused integer;
  v_is_lost boolean;
  v_files text[];
begin
  perform pawl.array_check('ids', p_ids, v_count, 'TG001'), pawl.array_check('chats', p_chats, v_count, 'TG001'),
          pawl.array_check('types', p_types, v_count, 'TG001'), pawl.array_check('payloads', p_payloads, v_count, 'TG001');
  if (p_bot_id > 0 and p_capacity >= 0 and v_count <= 10000) is not true or array_position(p_ids, null) is not null
     or array_position(p_chats, null) is not null then
    raise exception 'bot_id must be from 1, capacity from 0, and ids and chats must have at most 10000 elements without null'
      using errcode = 'TG001';
  end if;
  if 0 = any (p_chats) then
    v_answers := pawl.telegram_priority_left(v_domain, 9, 200);
  end if;
  if exists (select from unnest(p_payloads) u (payload) where u.payload->'first' = 'true') then
    v_confirmations := pawl.telegram_priority_left(v_domain, 6, 1000);
  end if;
  with item as materialized (
    select u.*, n.chat_now, n.class, pawl.telegram_key(n.chat_now, n.class) as key,
           case when u.type in ('photo', 'document') then u.payload->>'file' end as file
    from unnest(p_ids, p_chats, p_types, p_payloads) with ordinality u (id, chat_id, type, payload, ord),
    lateral (select case when u.chat_id <> 0 then pawl.telegram_chat_now(p_bot_id, u.chat_id) else 0 end as chat_now,
                    pawl.telegram_class(u.chat_id, u.payload) as class) n
  ), share as materialized (
    select k.key, pawl.telegram_share_left(v_domain, k.key) as share from (select distinct i.key from item i where i.key is not null) k
  ), busy as materialized (
    select b.chat_now, pawl.telegram_share_left(v_domain, b.chat_now::text) <= pawl.telegram_share() - 10 as is_busy
    from (select distinct i.chat_now from item i where i.class = 5) b
  ), within_share as (
    select s.*
    from (select i.*, row_number() over (partition by i.key order by i.ord) as chat_number, b.is_busy
          from item i left join busy b on b.chat_now = i.chat_now) s
    left join share l on l.key = s.key
    where s.chat_number <= case when s.chat_id = 0 then v_answers else l.share end -- answers have no key, so they are numbered together
      and case s.class when 5 then s.is_busy when 4 then s.is_busy is not true or s.type = 'edit' else true end
  ), chosen as materialized (
    select q.*
    from (select w.*, count(*) filter (where w.chat_id <> 0 and w.class <> 6) over (order by w.ord) as number,
                 count(*) filter (where w.class = 6) over (order by w.ord) as confirmation_number
          from within_share w) q
    where case when q.chat_id = 0 then true when q.class = 6 then q.confirmation_number <= v_confirmations
               else q.number <= p_capacity end
  )
  select array_agg(c.id order by c.ord), array_agg(c.key order by c.ord), array_agg(c.type order by c.ord),
         array_agg(case when c.file is null then c.payload else c.payload - 'file' end order by c.ord), array_agg(c.class order by c.ord),
         array_agg(case when c.chat_id = 0 then 1 when c.type in ('photo', 'document') then 4 else 20 end::smallint order by c.ord),
         (select count(*) from item i where i.class <> 5) - count(*) filter (where c.class <> 5),
         (select count(*) from item i where i.class = 6) > count(*) filter (where c.class = 6),
         array_agg(c.file order by c.ord)
  into v_ids, v_keys, v_types, v_payloads, v_priorities, v_attempts, v_refused, v_is_lost, v_files
  from chosen c;
  if v_is_lost then
    raise exception 'the outbox is full: a confirmation cannot be queued' using errcode = 'TG002';
  end if;
  if v_ids is not null then
    insert into pawl.telegram_file (bot_id, command_id, file)
    select p_bot_id, u.id, u.file from unnest(v_ids, v_files) u (id, file) where u.file is not null order by u.id
    on conflict (bot_id, command_id) do nothing;
    perform from pawl.send_items(false, pawl.telegram_outbox(p_bot_id), v_types, v_payloads, v_ids, null, v_priorities,
      v_attempts, null, null, null, null, v_keys);
  end if;
  return v_refused;
end
$$;

-- The file of a message that waits, in base64; null: it has none.
create or replace function pawl.telegram_file (p_bot_id bigint, p_command_id uuid)
  returns text
  language sql stable security definer set search_path = pawl, pg_temp
as $$
  select f.file from pawl.telegram_file f where f.bot_id = p_bot_id and f.command_id = p_command_id
$$;

-- Is there a later edit of the same message among those that wait? Then this one need not be sent. p_id: the command of an edit.
create or replace function pawl.telegram_superseded (p_bot_id bigint, p_id bigint, p_message_id bigint)
  returns boolean
  language plpgsql stable security definer set search_path = pawl, pg_temp
  set plan = keyed_cached
as $$
declare
  v_domain integer := pawl.domain_find(pawl.telegram_outbox(p_bot_id));
  v_key text := (select c.order_key from pawl.command c where c.id = p_id);
begin
  return exists (
    select from (
      select r.id from pawl.ready r where r.domain_id = v_domain and r.order_key = v_key and r.id > p_id
      union all
      select p.id from pawl.parked p where p.domain_id = v_domain and p.order_key = v_key and p.id > p_id) w
    cross join lateral (select c.type, c.payload from pawl.command c where c.id = w.id) c
    where c.type = 'edit' and c.payload->'message_id' = to_jsonb(p_message_id));
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
  if (p_bot_id > 0 and p_chat_id is not null) is not true then
    raise exception 'bot_id must be from 1, and chat_id must be given' using errcode = 'TG001';
  end if;
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

-- The last message of a chat that was sent with a reference; null: none.
create or replace function pawl.telegram_about (p_bot_id bigint, p_chat_id bigint, p_reference text)
  returns bigint
  language sql stable security definer set search_path = pawl, pg_temp
as $$
  select max(s.message_id) from pawl.telegram_sent s
  where s.bot_id = p_bot_id and s.chat_id = p_chat_id and s.reference = p_reference
$$;

-- Delete at most p_limit references older than p_days, as many chats that have had no message for a day, as many statuses of members whose time
-- is over, and as many files of messages that have ended. Returns how many rows.
create or replace function pawl.telegram_prune (p_days integer, p_limit integer)
  returns bigint
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
declare
  v_sent bigint;
  v_chats bigint;
  v_members bigint;
  v_files bigint;
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
  delete from pawl.telegram_file f where (f.bot_id, f.command_id) in (
    select o.bot_id, o.command_id from pawl.telegram_file o
    where not exists (
      select from pawl.command c
      where c.command_id = o.command_id and c.domain_id = pawl.domain_find(pawl.telegram_outbox(o.bot_id))
        and not exists (select from pawl.outcome e where e.id = c.id))
    limit p_limit for update skip locked);
  get diagnostics v_files = row_count;
  return v_sent + v_chats + v_members + v_files;
end
$$;
