-- unique.sql - unique commands: while a key is taken, a further send with it is a duplicate of the command that has it.
--
-- A key is a text, and it is one of its domain and type. The command that was sent with it has it as long as its scope says:
--
--     queued    until it begins: a worker has leased it for the first time, or it has ended
--     active    until it has ended, or is in the troubleshooting queue
--     a time    so long after it was sent
--
-- Nothing frees a key. Whether a command still has its key follows from where it is, and is decided when the next command is sent with the key. So a
-- claim, a settle and a decision of an operator neither read nor write anything for it, and a key is free exactly when they have committed.
-- A duplicate (ADR 53) is not queued. It is kept out, or it replaces the payload or moves the time of the command that has the key, which both are possible
-- only until that has begun. Its id is remembered with what became of it, so a repeat of the send has the same verdict.
-- Locks: a row of pawl.send_lock per key until the end of the transaction, in the order of the hashes (send_key.sql): senders with one key decide one after
-- another. Then the row of the command that has the key, where it waits, if the duplicate needs that it has not begun: no worker claims it before the commit, so
-- what a sender has written is there when the command begins. Then what pawl.send_items locks. Under p_nowait each is waited for 10 ms, else as
-- long as the session's lock_timeout; what cannot be decided is BUSY.
-- Errors: QU001 a key, a scope or an action is out of range, or the domain is reserved.

create or replace function pawl.unique_hash (p_domain text, p_type text, p_key text)
  returns uuid
  language sql immutable
as $$
  select encode(substr(sha256('\x7061776c20756e6971756500' /* pawl unique, NUL */ || convert_to(p_domain, 'UTF8') || '\x00' || convert_to(p_type, 'UTF8')
    || '\x00' || convert_to(p_key, 'UTF8')), 1, 16), 'hex')::uuid
$$;

-- For how long keys of this scope are taken; null: until the command has begun or ended. QU001: it is no scope.
create or replace function pawl.unique_span (p_for text)
  returns interval
  language plpgsql immutable set intervalstyle = 'postgres'
as $$
declare
  v_span interval;
begin
  if p_for is null or p_for in ('queued', 'active') then
    return null;
  end if;
  begin
    v_span := left(p_for, 100)::interval;
  exception when data_exception then
    v_span := null;
  end;
  if (extract(epoch from v_span) between 1 and 365 * 86400) is not true then
    raise exception 'unique_for must be "queued", "active" or a time from 1s to 365d, got "%"', left(p_for, 80) using errcode = 'QU001';
  end if;
  return v_span;
end
$$;

-- Raises unless the arguments about keys are in range.
create or replace function pawl.unique_check (p_domain text, p_count integer, p_keys text[], p_for text[], p_on_duplicates text[])
  returns void
  language plpgsql immutable
as $$
begin
  if p_keys is null then
    raise exception 'unique_for and on_duplicate need a unique_key' using errcode = 'QU001';
  end if;
  perform pawl.array_check('unique_keys', p_keys, p_count, 'QU001'),
          pawl.array_check('unique_for', p_for, p_count, 'QU001', true),
          pawl.array_check('on_duplicates', p_on_duplicates, p_count, 'QU001', true);
  if exists (select from unnest(p_keys) k where char_length(k) not between 1 and 200) then
    raise exception 'unique_key must have 1 to 200 characters' using errcode = 'QU001';
  end if;
  perform pawl.unique_span(f) from (select distinct f from unnest(p_for) f) u (f);
  if array_remove(p_on_duplicates, null) <@ '{keep,replace,move}'::text[] is false then
    raise exception 'on_duplicate must be keep, replace or move, got "%"',
      (select left(d, 80) from unnest(p_on_duplicates) d where d not in ('keep', 'replace', 'move') limit 1) using errcode = 'QU001';
  end if;
  if exists (select from unnest(p_keys, p_for, p_on_duplicates) u (k, f, d) where u.k is null and (u.f is not null or u.d is not null)) then
    raise exception 'unique_for and on_duplicate need a unique_key' using errcode = 'QU001';
  end if;
  if exists (select from pawl.reserved_domains() r where p_domain ~ r.pattern) then
    raise exception 'unique_key must not be given for a command of domain "%", which is reserved', left(p_domain, 80) using errcode = 'QU001';
  end if;
end
$$;

-- Lock a command that has not begun in the table in which it waits: delayed, ready or parked. Null: it has begun or ended.
create or replace function pawl.unbegun_lock (p_id bigint, out place text, out tid tid)
  language plpgsql
as $$
declare
  v_attempt smallint;
begin
  -- A command may move between two statements, and each reads anew.
  for v_try in 1..6 loop
    exit when pawl.command_status(p_id) <> 'PENDING' or exists (select from pawl.event e where e.id = p_id and e.event = 'RECEIVED');
    select 'delayed', d.ctid, d.attempt into place, tid, v_attempt from pawl.delayed d where d.id = p_id for update;
    if not found then
      select 'parked', p.ctid, 0 into place, tid, v_attempt
      from (select c.domain_id, c.order_key, c.id from pawl.command c where c.id = p_id and c.order_key is not null) c
      cross join lateral (
        select p.ctid from pawl.parked p
        where p.domain_id = c.domain_id and p.order_key = c.order_key and p.id = c.id for update) p;
    end if;
    if not found then
      select 'ready', r.ctid, r.attempt into place, tid, v_attempt
      from (select c.domain_id, c.priority, c.id as pos from pawl.command c where c.id = p_id
            union all
            select r.domain_id, r.priority, r.pos from pawl.ready r where r.id = p_id and r.pos <> r.id) w
      cross join lateral (
        select r.ctid, r.attempt from pawl.ready r
        where r.domain_id = w.domain_id and r.priority = w.priority and r.pos = w.pos for update) r;
    end if;
    if found then
      if v_attempt > 0 then -- the audit no longer has its first attempt
        place := null;
      end if;
      return;
    end if;
    if v_try = 6 then
      raise exception 'command is moving too fast to be locked' using errcode = '55P03';
    end if;
  end loop;
  place := null;
end
$$;

-- The same, waiting for so long for each lock. is_busy: another transaction has it.
create or replace function pawl.unbegun_try (p_id bigint, p_wait_ms integer, out place text, out tid tid, out is_busy boolean)
  language plpgsql
as $$
declare
  v_before text := current_setting('lock_timeout');
begin
  is_busy := false;
  perform set_config('lock_timeout', p_wait_ms::text, true);
  select u.place, u.tid into place, tid from pawl.unbegun_lock(p_id) u;
  perform set_config('lock_timeout', v_before, true);
exception when lock_not_available then
  is_busy := true; -- and the setting is as it was
end
$$;

-- One event of a kind a minute at most: a command may be moved a thousand times a second. p_by: the id of the duplicate.
create or replace function pawl.unique_note (p_id bigint, p_event text, p_now timestamptz, p_actor text, p_by uuid)
  returns void
  language sql
as $$
  insert into pawl.event (id, at, domain_id, attempt, event, actor, details)
  select c.id, p_now, c.domain_id, 0, p_event, p_actor, jsonb_build_object('duplicate', p_by)
  from pawl.command c
  where c.id = p_id
    and not exists (select from pawl.event e where e.id = p_id and e.event = p_event and e.at > p_now - interval '1 min')
$$;

-- Give a command that is locked, and has not begun, another payload. It keeps its position. p_bytes: as of pawl.payloads_bytes. tid: where its row is.
create or replace function pawl.unique_replace (p_place text, p_id bigint, p_payload jsonb, p_bytes integer, inout tid tid)
  language plpgsql
as $$
declare
  v_moved tid[];
begin
  insert into pawl.replaced_payload (id, payload_hash)
  select c.id, pawl.payload_hash(c.payload) from pawl.command c where c.id = p_id
  on conflict (id) do nothing;
  update pawl.command c set payload = coalesce(p_payload, 'null'), payload_bytes = p_bytes where c.id = p_id;
  if p_bytes is null or p_place = 'parked' then
    return;
  end if;
  -- A claim measures the payloads of those that say so. A row of ready is never updated.
  if p_place = 'delayed' then
    update pawl.delayed d set extras = true where d.id = p_id returning d.ctid into tid;
    return;
  end if;
  with taken as (
    delete from pawl.ready r where r.ctid = unique_replace.tid and not r.extras returning r.*
  ), put as (
    insert into pawl.ready (domain_id, priority, pos, id, attempt, max_attempts, extras, order_key, line)
    select t.domain_id, t.priority, t.pos, t.id, t.attempt, t.max_attempts, true, t.order_key, t.line from taken t
    returning ctid
  )
  select coalesce(array_agg(p.ctid), '{}') into v_moved from put p;
  if cardinality(v_moved) > 0 then
    tid := v_moved[1];
  end if;
end
$$;

-- Let a command that is locked, and has not begun, become due after this delay from now. The clock is read under the allocation lock: see pawl.requeue_due.
create or replace function pawl.unique_move (p_place text, p_tid tid, p_id bigint, p_delay_ms bigint)
  returns void
  language plpgsql
as $$
declare
  v_due timestamptz;
  v_deleted bigint;
  v_inserted bigint;
begin
  perform pawl.command_allocation_lock();
  v_due := pawl.now() + p_delay_ms * interval '1 ms';
  if p_place = 'delayed' and p_delay_ms > 0 then
    update pawl.delayed d set due = v_due where d.ctid = p_tid;
  elsif p_place = 'delayed' then
    perform pawl.requeue_delayed(array[p_id]);
  elsif p_place = 'parked' or exists (select from pawl.ready r where r.ctid = p_tid and r.order_key is not null) then
    -- It has not got its order key, and is delayed when it gets it.
    update pawl.command c set due_at = case when p_delay_ms > 0 then v_due end where c.id = p_id;
  elsif p_delay_ms > 0 then
    with taken as (
      delete from pawl.ready r where r.ctid = p_tid returning r.*
    ), put as (
      insert into pawl.delayed (id, due, domain_id, priority, attempt, max_attempts, extras)
      select t.id, v_due, t.domain_id, c.priority, t.attempt, t.max_attempts, t.extras -- a row of a line has the priority of lines
      from taken t cross join lateral (select c.priority from pawl.command c where c.id = t.id limit 1) c
      returning 1
    )
    select (select count(*) from taken), (select count(*) from put) into v_deleted, v_inserted;
    perform pawl.moved(v_deleted, v_inserted);
  end if;
end
$$;

-- The present status of a command that other sends are duplicates of.
create or replace function pawl.unique_status (p_domain_id integer, p_command_id uuid)
  returns text
  language sql stable
as $$
  select coalesce(
    (select pawl.command_status(c.id) from pawl.command c where c.command_id = p_command_id and c.domain_id = p_domain_id),
    (select k.status from pawl.kept_key k where k.command_id = p_command_id and k.domain_id = p_domain_id),
    'UNKNOWN')
$$;

-- Does a command have its key, and where does it wait, if that is asked for? It is then locked there, unless it has begun.
create or replace function pawl.unique_taken (
  p_nowait boolean, p_wait_ms integer, p_key pawl.unique_key, p_now timestamptz, p_is_place_asked boolean,
  out is_taken boolean, out is_busy boolean, out place text, out tid tid)
  language plpgsql
as $$
begin
  is_busy := false;
  is_taken := case p_key.scope when 'queued' then true
                               when 'active' then pawl.command_status(p_key.id) in ('PENDING', 'IN_PROGRESS')
                               when 'time' then p_key.until > p_now
                               else false end; -- no command had it before
  if is_taken and (p_is_place_asked or p_key.scope = 'queued') then
    if p_nowait then
      select u.place, u.tid, u.is_busy into place, tid, is_busy from pawl.unbegun_try(p_key.id, p_wait_ms) u;
    else
      select u.place, u.tid into place, tid from pawl.unbegun_lock(p_key.id) u;
    end if;
    is_taken := p_key.scope <> 'queued' or place is not null or is_busy;
  end if;
end
$$;

-- The items of a call with unique keys.
create or replace function pawl.unique_items (
  p_nowait boolean, p_domain text, p_types text[], p_payloads jsonb[], p_command_ids uuid[], p_delays_ms bigint[], p_priorities integer[],
  p_max_attempts integer[], p_reply_to text[], p_correlation_ids text[], p_order_keys text[], p_keyed boolean[], p_keys text[], p_for text[],
  p_on_duplicates text[])
  returns pawl.unique_item[]
  language sql
as $$
  select array_agg(row(
    u.ord, coalesce(u.command_id, pawl.uuid7()), u.command_id is not null, u.type, u.payload, b.bytes, u.delay_ms, u.priority, u.max_attempts,
    u.reply_to, u.correlation_id, u.order_key, u.keyed, u.key, case when u.key is not null then pawl.unique_hash(p_domain, u.type, u.key) end,
    case when u.unique_for in ('queued', 'active') then u.unique_for when u.unique_for is not null then 'time' else 'active' end,
    pawl.unique_span(u.unique_for), coalesce(u.on_duplicate, 'keep'))::pawl.unique_item order by u.ord)
  from unnest(p_types, p_payloads, p_command_ids, p_delays_ms, p_priorities, p_max_attempts, p_reply_to, p_correlation_ids, p_order_keys,
              p_keyed, p_keys, p_for, p_on_duplicates, pawl.payloads_bytes(p_payloads, p_nowait)) with ordinality
    u (type, payload, command_id, delay_ms, priority, max_attempts, reply_to, correlation_id, order_key, keyed, key, unique_for, on_duplicate, bytes, ord)
  cross join lateral (select u.bytes) b
$$;

-- Verdicts on items whose ids were sent as duplicates before: the same again.
create or replace function pawl.unique_known (p_domain_id integer, p_items pawl.unique_item[])
  returns pawl.send_verdict[]
  language sql stable
as $$
  select coalesce(array_agg(row(
    i.ord, k.duplicate_of, false, pawl.unique_status(p_domain_id, k.duplicate_of),
    case when k.type <> i.type then pawl.sent_otherwise('type', i.type, k.type)
         when k.payload_hash not in ('\x00', pawl.payload_hash(i.payload)) then 'payload differs from what was sent first' end,
    k.duplicate)::pawl.send_verdict), '{}')
  from unnest(p_items) i
  cross join lateral (
    select k.* from pawl.kept_key k where k.command_id = i.command_id and k.domain_id = p_domain_id and k.duplicate_of is not null limit 1) k
  where i.hash is not null and i.is_named
$$;

-- Of these items, those that are sent as they are: without a key, or of commands that exist or have existed.
create or replace function pawl.unique_plain (p_domain_id integer, p_items pawl.unique_item[])
  returns integer[]
  language sql stable
as $$
  select array(
    select i.ord
    from unnest(p_items) i
    left join lateral (select true as is_there from pawl.command c where c.command_id = i.command_id and c.domain_id = p_domain_id limit 1) c on true
    left join lateral (select true as is_there from pawl.kept_key k where k.command_id = i.command_id and k.domain_id = p_domain_id limit 1) k on true
    where i.hash is null or c.is_there or k.is_there)
$$;

-- The items that have no verdict among these.
create or replace function pawl.unique_without (p_items pawl.unique_item[], p_verdicts pawl.send_verdict[])
  returns pawl.unique_item[]
  language sql immutable
as $$
  select array(select i from unnest(p_items) i where (i.ord in (select v.ord from unnest(p_verdicts) v)) is not true order by i.ord)
$$;

-- Verdicts on items that another transaction keeps from a decision.
create or replace function pawl.unique_busy (p_items pawl.unique_item[])
  returns pawl.send_verdict[]
  language sql immutable
as $$
  select array(select row(i.ord, i.command_id, false, 'BUSY', null, null)::pawl.send_verdict from unnest(p_items) i)
$$;

-- What became of the command that has the key. p_place: where it waits; null: it has begun.
create or replace function pawl.unique_done (p_action text, p_place text)
  returns text
  language sql immutable
as $$
  select case when p_place is null then 'kept' else case p_action when 'replace' then 'replaced' when 'move' then 'moved' else 'kept' end end
$$;

-- Verdicts on items that are duplicates of the command that has their key. place, tid: where it waits and is locked; null: it has begun. Of several
-- payloads and times the last one counts. The ids that the sender has named are remembered for as long as any.
create or replace function pawl.unique_duplicate (
  p_domain_id integer, p_key pawl.unique_key, p_place text, p_tid tid, p_items pawl.unique_item[], p_fresh boolean, p_actor text, p_now timestamptz)
  returns pawl.send_verdict[]
  language plpgsql
as $$
declare
  v_replace pawl.unique_item := (select i from unnest(p_items) i where i.action = 'replace' order by i.ord desc limit 1);
  v_move pawl.unique_item := (select i from unnest(p_items) i where i.action = 'move' order by i.ord desc limit 1);
  v_status text;
begin
  if p_place is not null and v_replace.ord is not null then
    p_tid := pawl.unique_replace(p_place, p_key.id, v_replace.payload, v_replace.bytes, p_tid);
    perform pawl.unique_note(p_key.id, 'PAYLOAD_REPLACED', p_now, p_actor, v_replace.command_id);
  end if;
  if p_place is not null and v_move.ord is not null then
    perform pawl.unique_move(p_place, p_tid, p_key.id, coalesce(v_move.delay_ms, 0)), pawl.unique_note(p_key.id, 'RESCHEDULED', p_now, p_actor, v_move.command_id);
  end if;
  v_status := pawl.unique_status(p_domain_id, p_key.command_id);
  insert into pawl.kept_key (command_id, domain_id, type, payload_hash, status, ended_at, duplicate_of, duplicate)
  select i.command_id, p_domain_id, i.type, case when p_fresh then '\x00' else pawl.payload_hash(i.payload) end, 'DUPLICATE', p_now, p_key.command_id,
         pawl.unique_done(i.action, p_place)
  from unnest(p_items) i
  where i.is_named and i.command_id <> p_key.command_id
  on conflict (command_id, domain_id) do nothing;
  return array(
    select row(i.ord, p_key.command_id, false, v_status, null,
               case when i.command_id <> p_key.command_id then pawl.unique_done(i.action, p_place) end)::pawl.send_verdict
    from unnest(p_items) i);
end
$$;

-- One round over the items that have no verdict: verdicts on those whose keys are taken, and of each free key the first item, which is to be sent.
create or replace function pawl.unique_round (
  p_nowait boolean, p_domain_id integer, p_items pawl.unique_item[], p_busy uuid[], p_fresh boolean, p_actor text, p_now timestamptz,
  out verdicts pawl.send_verdict[], out firsts integer[])
  language plpgsql
as $$
declare
  v_same record; -- items with the same key
  v_is_taken boolean;
  v_is_busy boolean;
  v_place text;
  v_tid tid;
  v_waits integer := 0;
begin
  verdicts := '{}';
  firsts := '{}';
  for v_same in
    select g.items, g.is_asked, g.hash = any (p_busy) as is_busy, (select k from pawl.unique_key k where k.hash = g.hash) as key
    from (select i.hash, array_agg(i order by i.ord) as items, bool_or(i.action <> 'keep') as is_asked from unnest(p_items) i group by i.hash) g
    order by g.hash
  loop
    v_is_busy := v_same.is_busy;
    if not v_is_busy then
      select t.is_taken, t.is_busy, t.place, t.tid into v_is_taken, v_is_busy, v_place, v_tid
      from pawl.unique_taken(p_nowait, case when v_waits < 5 then 10 else 1 end, v_same.key, p_now, v_same.is_asked) t;
      v_waits := v_waits + v_is_busy::integer;
    end if;
    if v_is_busy then
      verdicts := verdicts || pawl.unique_busy(v_same.items);
    elsif v_is_taken then
      verdicts := verdicts || pawl.unique_duplicate(p_domain_id, v_same.key, v_place, v_tid, v_same.items, p_fresh, p_actor, p_now);
    else
      firsts := firsts || (v_same.items[1]).ord;
    end if;
  end loop;
end
$$;

-- Send items. p_nowait, p_domain, p_batch_id, p_actor: as of pawl.send_items.
create or replace function pawl.unique_send (p_nowait boolean, p_domain text, p_batch_id uuid, p_actor text, p_items pawl.unique_item[])
  returns pawl.send_verdict[]
  language plpgsql
as $$
declare
  v record;
begin
  select array_agg(i.type order by i.ord) as types, array_agg(i.payload order by i.ord) as payloads, array_agg(i.command_id order by i.ord) as ids,
         array_agg(i.delay_ms order by i.ord) as delays, array_agg(i.priority order by i.ord) as priorities,
         array_agg(i.max_attempts order by i.ord) as attempts, array_agg(i.reply_to order by i.ord) as replies,
         array_agg(i.correlation_id order by i.ord) as correlations, array_agg(i.order_key order by i.ord) as order_keys,
         array_agg(i.keyed order by i.ord) as keyed, array_agg(i.ord order by i.ord) as ords, bool_or(i.delay_ms > 0) as has_delay,
         count(i.reply_to) > 0 as has_reply, count(i.order_key) > 0 as has_order, bool_or(i.keyed) as has_key
  into v
  from unnest(p_items) i;
  return array(
    select row(v.ords[s.ord], s.command_id, s.is_new, s.status, s.refusal, null)::pawl.send_verdict
    from pawl.send_items(p_nowait, p_domain, v.types, v.payloads, v.ids, case when v.has_delay then v.delays end, v.priorities, v.attempts,
      case when v.has_reply then v.replies end, v.correlations, p_batch_id, p_actor, case when v.has_order then v.order_keys end,
      p_keyed => case when v.has_key then v.keyed end) s);
end
$$;

-- The new ones among the items that were sent take their keys, which are locked and free.
create or replace function pawl.unique_take (p_domain_id integer, p_items pawl.unique_item[], p_sent pawl.send_verdict[], p_now timestamptz)
  returns void
  language sql
as $$
  insert into pawl.unique_key (hash, id, command_id, domain_id, type, key, scope, until)
  select i.hash, c.id, i.command_id, p_domain_id, i.type, i.key, i.scope, p_now + i.span
  from unnest(p_items) i
  join unnest(p_sent) s on s.ord = i.ord
  cross join lateral (select c.id from pawl.command c where c.command_id = i.command_id and c.domain_id = p_domain_id limit 1) c
  where s.is_new and i.hash is not null
  order by i.hash
  on conflict (hash) do update
  set id = excluded.id, command_id = excluded.command_id, scope = excluded.scope, until = excluded.until
$$;

-- The part of pawl.send_items for calls with unique keys; items without one are among them. duplicate: what became of the command that has the key, of which
-- the row has id and status: kept, replaced or moved; null: the item is no duplicate.
-- In rounds: of each free key the first item is sent and takes it; in the next round the others with that key are its duplicates.
create or replace function pawl.send_unique (
  p_nowait boolean, p_domain text, p_batch_id uuid, p_actor text, p_fresh boolean, p_items pawl.unique_item[])
  returns table (ord integer, command_id uuid, is_new boolean, status text, refusal text, duplicate text)
  language plpgsql
  set plan = ordered_cached
as $$
#variable_conflict use_column
declare
  v_domain integer := pawl.domain_id(p_domain);
  v_now timestamptz := pawl.now();
  v_busy uuid[] := pawl.send_keys_hold(p_nowait, array(select distinct i.hash from unnest(p_items) i where i.hash is not null order by i.hash));
  v_verdicts pawl.send_verdict[] := pawl.unique_known(v_domain, p_items); -- in a snapshot that sees what the locks were waited for
  v_left pawl.unique_item[] := pawl.unique_without(p_items, v_verdicts);
  v_ords integer[] := pawl.unique_plain(v_domain, v_left); -- of the items that are sent in a round
  v_send pawl.unique_item[];
  v_sent pawl.send_verdict[];
  v_round record;
begin
  loop
    v_send := array(select i from unnest(v_left) i where (i.ord in (select unnest(v_ords))) is true);
    v_left := array(select i from unnest(v_left) i where (i.ord in (select unnest(v_ords))) is not true);
    if cardinality(v_send) > 0 then
      v_sent := pawl.unique_send(p_nowait, p_domain, p_batch_id, p_actor, v_send);
      v_verdicts := v_verdicts || v_sent;
      perform pawl.unique_take(v_domain, v_send, v_sent, v_now);
      v_busy := v_busy || array(select i.hash from unnest(v_send) i join unnest(v_sent) s on s.ord = i.ord where s.status = 'BUSY' and i.hash is not null);
    end if;
    exit when cardinality(v_left) = 0;
    select r.verdicts, r.firsts into v_round
    from pawl.unique_round(p_nowait, v_domain, v_left, v_busy, coalesce(p_fresh, false), p_actor, v_now) r;
    v_verdicts := v_verdicts || v_round.verdicts;
    v_left := pawl.unique_without(v_left, v_round.verdicts);
    v_ords := v_round.firsts;
  end loop;
  return query select v.* from unnest(v_verdicts) v order by v.ord;
end
$$;

-- Of commands that retention is about to delete, those of which no sender has the unique key locked. Deletes the keys of these, but for one that is taken
-- for a time: it is deleted when that is over.
create or replace function pawl.unique_prunable (p_ids bigint[], p_now timestamptz)
  returns bigint[]
  language plpgsql
  set plan = keyed_cached
as $$
declare
  v_tids tid[];
begin
  if not exists (select from pawl.unique_key) then
    return p_ids;
  end if;
  v_tids := array(
    select k.ctid from unnest(p_ids) u (id) cross join lateral (select k.ctid from pawl.unique_key k where k.id = u.id for update skip locked) k);
  p_ids := array(
    select u.id from unnest(p_ids) u (id)
    where not exists (select from pawl.unique_key k where k.id = u.id and k.ctid <> all (v_tids)));
  delete from pawl.unique_key k where k.ctid = any (v_tids) and (k.until > p_now) is not true;
  return p_ids;
end
$$;

-- Delete keys whose time is over, and the brief notes of duplicates.
create or replace function pawl.unique_prune (p_limit integer, p_now timestamptz)
  returns void
  language plpgsql
as $$
begin
  delete from pawl.unique_key k where k.ctid = any (array(
    select k.ctid from pawl.unique_key k where k.until <= p_now order by k.until limit p_limit for update skip locked));
  delete from pawl.kept_key k where k.ctid = any (array(
    select k.ctid from pawl.kept_key k where k.payload_hash = '\x00' and k.ended_at < p_now - interval '1 hour' order by k.ended_at limit p_limit));
end
$$;
