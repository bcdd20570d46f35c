-- send.sql - put commands in the queue, in the caller's own transaction.
--
-- Invariant: (command id, domain) is one command for as long as its key is kept: while the command is there, and then in
-- pawl.kept_key. A repeated send changes nothing and returns the status of
-- the first one; with another field, other than the delay, it is refused, and the refusal names the field (verdict QU002). Of a command
-- that retention has deleted only type and payload are known.
-- Locks: the batch's row (share), new reply queues by name, then the unique key. A concurrent send of
-- the same id, by another transaction that has not ended, holds it. pawl.send waits for that transaction, and for a batch that is being sealed or a reply queue that is being created, until the
-- session's lock_timeout. Callers that share a transaction with others call pawl.send_items with p_nowait, which waits at most 10 ms
-- for each of them, at most five times for ids and for queues, and returns BUSY for what it could not decide.
-- Errors: QU001 arguments out of range, arrays of different length, a payload too large. QU003 the batch is closed, QU004 unknown.

-- The status that a repeated send returns: that of the first one. UNKNOWN: there is no such command.
create or replace function pawl.command_status (p_id bigint)
  returns text
  language sql stable
as $$
  select coalesce(
    (select o.status from pawl.outcome o where o.id = p_id),
    (select 'IN_PROGRESS' from pawl.lease l where l.id = p_id),
    (select 'IN_TSQ' from pawl.tsq t where t.id = p_id),
    (select 'PENDING' from pawl.command c where c.id = p_id),
    'UNKNOWN')
$$;

-- The length of a payload as text, which is what a worker gets. An error when it is above 16 MiB.
create or replace function pawl.payload_bytes (p_payload jsonb)
  returns integer
  language plpgsql immutable
as $$
begin
  return pawl.payload_limit(pawl.json_bytes(p_payload));
end
$$;

-- The same number, or an error.
create or replace function pawl.payload_limit (p_bytes bigint)
  returns integer
  language plpgsql immutable
as $$
declare
  c_max constant integer := 16 * 1024 * 1024;
begin
  if p_bytes > c_max then
    raise exception 'payload must have at most % bytes as text, got more', c_max using errcode = 'QU001';
  end if;
  return p_bytes;
end
$$;

-- Lengths of the payloads as text, null for those below 1000 bytes; null when all are. So claims need not measure.
-- p_checked: the caller has bounded the exponents of all numbers (bus/send.c does), so that the text itself can be measured,
-- which takes an eighth of the time.
create or replace function pawl.payloads_bytes (p_payloads jsonb[], p_checked boolean)
  returns integer[]
  language plpgsql immutable
as $$
begin
  if not exists (select from (select unnest(p_payloads) as p) u where pg_column_size(u.p) >= 1000 or octet_length(u.p::text) >= 1000) then
    return null;
  end if;
  return array(
    select nullif(greatest(case when p_checked then pawl.payload_limit(octet_length(u.p::text)) else pawl.payload_bytes(u.p) end, 999), 999)
    from unnest(p_payloads) with ordinality u (p, n) order by u.n);
end
$$;

-- What is retained of a payload when the command is deleted. One that is too large as text, which an earlier version has taken, has an empty
-- hash: no payload that can be sent is the same. PL/pgSQL, because the planner would write the constant argument of a SQL function out
-- before the CASE around it is decided.
create or replace function pawl.payload_hash (p_payload jsonb)
  returns bytea
  language plpgsql immutable
as $$
begin
  if pg_column_size(array[p_payload]) >= 1000 and pawl.json_bytes(p_payload) > 16 * 1024 * 1024 then
    return ''::bytea;
  end if;
  return sha256(convert_to(coalesce(p_payload, 'null')::text, 'UTF8'));
end
$$;

-- Of commands that were just written, those whose id was used by a command that retention has deleted: they are deleted again. Returns
-- their numbers. After the insert, because only then is it certain that a key that retention moves meanwhile is seen: the insert waits
-- for the deletion of the old row, and this statement has a later snapshot. (Under REPEATABLE READ it has not: a transaction that
-- began before retention moved the key may use the id once more.)
create or replace function pawl.send_known (p_domain_id integer, p_made bigint[])
  returns bigint[]
  language plpgsql
as $$
declare
  v_known bigint[];
begin
  if not exists (select from pawl.kept_key) then
    return '{}'::bigint[];
  end if;
  v_known := array(
    select c.id from unnest(p_made) m (id)
    cross join lateral (select c.id, c.command_id, c.priority from pawl.command c where c.id = m.id limit 1) c
    cross join lateral (
      select from pawl.kept_key k where k.command_id = c.command_id and k.domain_id = p_domain_id limit 1) k);
  if cardinality(v_known) > 0 then
    delete from pawl.ready r where (r.domain_id, r.priority, r.pos) in (
      select c.domain_id, c.priority, c.id from pawl.command c where c.id = any (v_known));
    delete from pawl.delayed d where d.id = any (v_known);
    delete from pawl.command c where c.id = any (v_known);
  end if;
  return v_known;
end
$$;

-- The rows of commands that are new, of items without delays and order keys. Returns their numbers. Two inserts from the arguments take less
-- time than the statement of pawl.send_put, which carries the rows of one insert to the next. Arrays are read by unnest in a select list,
-- all of them in step, and null ones as nulls: in FROM their rows would be copied first, and subscripts take longer.
-- p_fresh: no other command has these ids, or there is an error (23505).
create or replace function pawl.send_put_ready (
  p_domain_id integer, p_batch bigint, p_now timestamptz, p_actor text, p_ids uuid[], p_types text[], p_payloads jsonb[],
  p_bytes integer[], p_priorities smallint[], p_max_attempts smallint[], p_reply_to text[], p_correlation_ids text[], p_fresh boolean)
  returns bigint[]
  language plpgsql
as $$
declare
  v_count integer := cardinality(p_ids);
  v_new bigint;
  v_numbers bigint[] := array(select nextval('pawl.command_seq') from (select generate_series(1, v_count)) n);
begin
  if p_fresh then -- the same, without looking each id up first
    insert into pawl.command (id, domain_id, command_id, type, payload, payload_bytes, priority, max_attempts, reply_to, correlation_id,
                              batch_id, created_at, sender)
    select i.id, p_domain_id, i.command_id, i.type, coalesce(i.payload, 'null'), i.bytes, coalesce(i.priority, 4),
           coalesce(i.max_attempts, 3), i.reply_to, i.correlation_id, p_batch, p_now, p_actor
    from (select unnest(v_numbers) as id, unnest(p_ids) as command_id, unnest(p_types) as type, unnest(p_payloads) as payload,
                 unnest(p_bytes) as bytes, unnest(p_priorities) as priority, unnest(p_max_attempts) as max_attempts,
                 unnest(p_reply_to) as reply_to, unnest(p_correlation_ids) as correlation_id) i;
  else
    insert into pawl.command (id, domain_id, command_id, type, payload, payload_bytes, priority, max_attempts, reply_to, correlation_id,
                              batch_id, created_at, sender)
    select i.id, p_domain_id, i.command_id, i.type, coalesce(i.payload, 'null'), i.bytes, coalesce(i.priority, 4),
           coalesce(i.max_attempts, 3), i.reply_to, i.correlation_id, p_batch, p_now, p_actor
    from (select unnest(v_numbers) as id, unnest(p_ids) as command_id, unnest(p_types) as type, unnest(p_payloads) as payload,
                 unnest(p_bytes) as bytes, unnest(p_priorities) as priority, unnest(p_max_attempts) as max_attempts,
                 unnest(p_reply_to) as reply_to, unnest(p_correlation_ids) as correlation_id) i
    on conflict on constraint command_key do nothing;
  end if;
  get diagnostics v_new = row_count;
  if v_new < v_count then
    v_numbers := array(select c.id from unnest(v_numbers) n (id) cross join lateral (select c.id from pawl.command c where c.id = n.id limit 1) c);
    insert into pawl.ready (domain_id, priority, pos, id, attempt, max_attempts, extras)
    select p_domain_id, c.priority, c.id, c.id, 0, c.max_attempts, c.reply_to is not null or c.batch_id is not null or c.payload_bytes is not null
    from unnest(v_numbers) n (id)
    cross join lateral (select c.* from pawl.command c where c.id = n.id limit 1) c;
  else
    insert into pawl.ready (domain_id, priority, pos, id, attempt, max_attempts, extras)
    select p_domain_id, coalesce(i.priority, 4), i.id, i.id, 0, coalesce(i.max_attempts, 3),
           i.reply_to is not null or p_batch is not null or i.bytes is not null
    from (select unnest(v_numbers) as id, unnest(p_bytes) as bytes, unnest(p_priorities) as priority, unnest(p_max_attempts) as max_attempts,
                 unnest(p_reply_to) as reply_to) i;
  end if;
  return v_numbers;
end
$$;

-- The rows of commands that are new, but for those whose ids are in p_aside. Returns their numbers. Of several items with one id the
-- first counts.
create or replace function pawl.send_put (
  p_domain_id integer, p_batch bigint, p_now timestamptz, p_actor text, p_ids uuid[], p_types text[], p_payloads jsonb[],
  p_bytes integer[], p_delays_ms bigint[], p_priorities smallint[], p_max_attempts smallint[], p_reply_to text[],
  p_correlation_ids text[], p_order_keys text[], p_aside uuid[], p_fresh boolean)
  returns bigint[]
  language plpgsql
as $$
#variable_conflict use_column
declare
  v_made bigint[];
begin
  if p_delays_ms is null and p_order_keys is null and p_aside is null then -- nearly always
    return pawl.send_put_ready(p_domain_id, p_batch, p_now, p_actor, p_ids, p_types, p_payloads, p_bytes, p_priorities, p_max_attempts,
                               p_reply_to, p_correlation_ids, p_fresh);
  end if;
  with item as (
    select u.ord::integer, u.command_id, u.type, coalesce(u.payload, 'null') as payload, u.bytes,
           coalesce(u.priority, 4)::smallint as priority, coalesce(u.max_attempts, 3)::smallint as max_attempts,
           coalesce(u.delay_ms, 0) as delay_ms, u.reply_to, u.correlation_id, u.order_key
    from unnest(p_ids, p_types, p_payloads, p_bytes, p_priorities, p_max_attempts, p_delays_ms, p_reply_to, p_correlation_ids,
                p_order_keys)
      with ordinality u (command_id, type, payload, bytes, priority, max_attempts, delay_ms, reply_to, correlation_id, order_key, ord)
    where p_aside is null or u.command_id <> all (p_aside)
  ), made as (
    insert into pawl.command (id, domain_id, command_id, type, payload, payload_bytes, priority, max_attempts, reply_to,
                              correlation_id, batch_id, created_at, sender, order_key, due_at)
    select nextval('pawl.command_seq'), p_domain_id, i.command_id, i.type, i.payload, i.bytes, i.priority, i.max_attempts,
           i.reply_to, i.correlation_id, p_batch, p_now, p_actor, i.order_key,
           case when i.order_key is not null and i.delay_ms > 0 then p_now + i.delay_ms * interval '1 ms' end
    from item i
    on conflict on constraint command_key do nothing
    returning id, command_id, priority, max_attempts, order_key,
              reply_to is not null or batch_id is not null or order_key is not null or payload_bytes is not null as extras
  ), waiting as (
    insert into pawl.delayed (id, due, domain_id, priority, attempt, max_attempts, extras)
    select f.id, p_now + f.delay_ms * interval '1 ms', p_domain_id, f.priority, 0, f.max_attempts, f.extras
    from (select distinct on (m.id) m.id, i.delay_ms, m.priority, m.max_attempts, m.extras
          from made m join item i using (command_id)
          where p_delays_ms is not null and m.order_key is null -- with a key it is delayed when its turn comes
          order by m.id, i.ord) f
    where f.delay_ms > 0
    returning id
  ), queued as (
    insert into pawl.ready (domain_id, priority, pos, id, attempt, max_attempts, extras, order_key)
    select p_domain_id, m.priority, m.id, m.id, 0, m.max_attempts, m.extras, m.order_key
    from made m
    where p_delays_ms is null or not exists (select from waiting w where w.id = m.id)
  )
  select array_agg(m.id) into v_made from made m;
  return v_made;
end
$$;

-- The ids that a transaction which has not ended is sending too, or deletes (retention). An insert meets their rows, and waits. So each
-- is inserted, in a subtransaction that is rolled back in any case, under the session's lock_timeout, which the caller has made short.
-- After five waits the ids that were not tried are taken for busy as well: they make no other item wait, and are tried again alone.
create or replace function pawl.send_busy (p_domain_id integer, p_ids uuid[])
  returns uuid[]
  language plpgsql
as $$
declare
  c_rolled_back constant text := 'PWBSY';
  v_ids uuid[] := array(select distinct u.id from unnest(p_ids) u (id) order by u.id);
  v_busy uuid[] := '{}'::uuid[];
  v_at integer := 1; -- variables keep their values when a subtransaction is rolled back
begin
  loop
    begin
      while v_at <= cardinality(v_ids) loop
        insert into pawl.command (id, domain_id, command_id, type, payload, priority, max_attempts, created_at)
        values (nextval('pawl.command_seq'), p_domain_id, v_ids[v_at], 'busy', 'null', 0, 1, 'epoch')
        on conflict on constraint command_key do nothing;
        v_at := v_at + 1;
      end loop;
      raise exception using errcode = c_rolled_back;
    exception
      when lock_not_available then
        v_busy := v_busy || v_ids[v_at];
        v_at := v_at + 1;
        if cardinality(v_busy) >= 5 then
          return v_busy || v_ids[v_at:];
        end if;
      when sqlstate 'PWBSY' then
        return v_busy;
    end;
  end loop;
end
$$;

-- One row per item, in order. NULL arrays and NULL elements mean the default. p_delays_ms: from now.
-- status: of the command. BUSY, only with p_nowait: another transaction that has not ended sends the same id, creates the reply queue
-- or holds the batch; nothing was done.
-- p_fresh: the caller made the ids for this call. If all commands are new, as they are unless it is tried again, one row with the ord 0
-- says so.
create or replace function pawl.send_items (
  p_nowait boolean, p_domain text, p_types text[], p_payloads jsonb[], p_command_ids uuid[], p_delays_ms bigint[],
  p_priorities smallint[], p_max_attempts smallint[], p_reply_to text[], p_correlation_ids text[], p_batch_id uuid, p_actor text,
  p_order_keys text[] default null, p_fresh boolean default false)
  returns table (ord integer, command_id uuid, is_new boolean, status text, refusal text)
  language plpgsql security definer set search_path = pawl, pg_temp
  set plan = ordered_cached
as $$
#variable_conflict use_column
declare
  v_now timestamptz;
  v_count integer := coalesce(cardinality(p_types), 0);
  v_domain integer := pawl.domain_id(p_domain);
  v_batch bigint;
  v_ids uuid[] := p_command_ids;
  v_bytes integer[];
  v_lock_timeout text := current_setting('lock_timeout');
  v_is_held boolean := false; -- the batch, by another transaction
  v_held_queues text[];
  v_busy uuid[];
  v_fresh boolean := coalesce(p_fresh and p_command_ids is not null, false);
  v_is_made_here boolean := false; -- every id: no other command has it
  v_made bigint[];
  v_known bigint[];
begin
  if v_count not between 1 and 100000 then
    raise exception 'types must have 1 to 100000 elements, got %', v_count using errcode = 'QU001';
  end if;
  perform pawl.array_check('types', p_types, v_count, 'QU001'), pawl.array_check('payloads', p_payloads, v_count, 'QU001'),
          pawl.array_check('command_ids', p_command_ids, v_count, 'QU001', true),
          pawl.array_check('delays_ms', p_delays_ms, v_count, 'QU001', true),
          pawl.array_check('priorities', p_priorities, v_count, 'QU001', true),
          pawl.array_check('max_attempts', p_max_attempts, v_count, 'QU001', true),
          pawl.array_check('reply_to', p_reply_to, v_count, 'QU001', true),
          pawl.array_check('correlation_ids', p_correlation_ids, v_count, 'QU001', true),
          pawl.array_check('order_keys', p_order_keys, v_count, 'QU001', true);
  if exists (select from unnest(case when array_remove(p_types, p_types[1]) = '{}' then p_types[1:1] else p_types end) t
             where t is null or t !~ '^[A-Za-z0-9][A-Za-z0-9_.:-]{0,99}$') then
    raise exception 'type must be 1 to 100 letters, digits, "_", ".", ":" or "-", beginning with a letter or digit'
      using errcode = 'QU001';
  end if;
  if exists (select from unnest(p_priorities) p where p not between 0 and 9) then
    raise exception 'priority must be from 0 to 9' using errcode = 'QU001';
  end if;
  if exists (select from unnest(p_max_attempts) m where m not between 1 and 1000) then
    raise exception 'max_attempts must be from 1 to 1000' using errcode = 'QU001';
  end if;
  if exists (select from unnest(p_delays_ms) d where d not between 0 and 315360000000) then
    raise exception 'delay must be from 0 to 315360000000 ms' using errcode = 'QU001';
  end if;
  if p_reply_to is not null then
    perform pawl.reply_to_check(p_reply_to);
  end if;
  if exists (select from unnest(p_correlation_ids) c where char_length(c) > 200) then
    raise exception 'correlation_id must have at most 200 characters' using errcode = 'QU001';
  end if;
  if exists (select from unnest(p_order_keys) k where char_length(k) not between 1 and 200) then
    raise exception 'order_key must have 1 to 200 characters' using errcode = 'QU001';
  end if;
  if char_length(p_actor) > 400 then
    raise exception 'actor must have at most 400 characters, got %', char_length(p_actor) using errcode = 'QU001';
  end if;
  v_bytes := pawl.payloads_bytes(p_payloads, p_nowait);
  if v_ids is null or array_position(v_ids, null) is not null then
    v_is_made_here := v_ids is null or array_remove(v_ids, null) = '{}';
    -- Not by subscripts: in an array with nulls each of them scans all elements before it.
    v_ids := array(select coalesce(u.id, pawl.uuid7())
                   from rows from (unnest(p_command_ids), generate_series(1, v_count)) u (id, n)
                   order by u.n);
  end if;
  if p_nowait then
    perform set_config('lock_timeout', '10ms', true);
    if p_batch_id is not null then
      begin
        v_batch := pawl.batch_open(p_batch_id, v_domain, p_command_ids);
      exception when lock_not_available then
        v_is_held := true;
      end;
    end if;
    if p_reply_to is not null and not v_is_held then
      v_held_queues := pawl.reply_queues_busy(p_reply_to);
      if cardinality(v_held_queues) > 0 then
        v_busy := array(select u.id from unnest(v_ids, p_reply_to) u (id, reply_to) where u.reply_to = any (v_held_queues));
      end if;
    end if;
    perform set_config('lock_timeout', v_lock_timeout, true);
  else
    v_batch := pawl.batch_open(p_batch_id, v_domain, p_command_ids);
    if p_reply_to is not null then
      perform pawl.reply_queues(p_reply_to);
    end if;
  end if;
  perform pawl.allocation_lock(2);
  v_now := pawl.now(); -- under the lock: see pawl.requeue_due
  if v_is_held then
    v_made := '{}';
  elsif v_fresh then
    begin
      if p_nowait then
        perform set_config('lock_timeout', '10ms', true);
      end if;
      v_made := pawl.send_put(v_domain, v_batch, v_now, p_actor, v_ids, p_types, p_payloads, v_bytes, p_delays_ms, p_priorities,
                              p_max_attempts, p_reply_to, p_correlation_ids, p_order_keys, v_busy, true);
    exception when unique_violation or lock_not_available then
      v_fresh := false;
    end;
    perform set_config('lock_timeout', v_lock_timeout, true);
    if not v_fresh then -- an earlier try of this call has committed, or has not ended
      return query select s.* from pawl.send_items(p_nowait, p_domain, p_types, p_payloads, p_command_ids, p_delays_ms, p_priorities,
        p_max_attempts, p_reply_to, p_correlation_ids, p_batch_id, p_actor, p_order_keys) s;
      return;
    end if;
  elsif p_nowait and p_command_ids is not null then
    begin
      perform set_config('lock_timeout', '10ms', true);
      v_made := pawl.send_put(v_domain, v_batch, v_now, p_actor, v_ids, p_types, p_payloads, v_bytes, p_delays_ms, p_priorities,
                              p_max_attempts, p_reply_to, p_correlation_ids, p_order_keys, v_busy, false);
    exception when lock_not_available then
      perform set_config('lock_timeout', '10ms', true);
      v_busy := v_busy || pawl.send_busy(v_domain, v_ids);
      perform set_config('lock_timeout', '100ms', true);
      v_made := pawl.send_put(v_domain, v_batch, v_now, p_actor, v_ids, p_types, p_payloads, v_bytes, p_delays_ms, p_priorities,
                              p_max_attempts, p_reply_to, p_correlation_ids, p_order_keys, v_busy, false);
    end;
    perform set_config('lock_timeout', v_lock_timeout, true);
  else
    v_made := pawl.send_put(v_domain, v_batch, v_now, p_actor, v_ids, p_types, p_payloads, v_bytes, p_delays_ms, p_priorities,
                            p_max_attempts, p_reply_to, p_correlation_ids, p_order_keys, v_busy, v_is_made_here);
  end if;

  if p_command_ids is not null then
    v_known := pawl.send_known(v_domain, v_made);
    if cardinality(v_known) > 0 then
      v_made := array(select m from unnest(v_made) m except select k from unnest(v_known) k);
    end if;
  end if;
  if p_domain like 'process:%' and cardinality(v_made) > 0 then
    perform pawl.process_create(p_domain, v_made);
  end if;
  if p_reply_to is not null and cardinality(v_made) > 0 and exists (select from unnest(p_reply_to) r where r like 'response:%') then
    perform pawl.process_sent_note(v_made);
  end if;
  if cardinality(v_made) = v_count and v_fresh then
    return query select 0, null::uuid, true, 'PENDING', null::text;
    return;
  elsif cardinality(v_made) = v_count then
    return query select n::integer, v_ids[n], true, 'PENDING', null::text from generate_series(1, v_count) n order by n;
    return;
  end if;
  -- Some existed before: a new snapshot, in which their first senders have committed.
  perform pawl.replay_barrier();
  return query
    -- By a window over both lists, because a join of two lists row by row takes the square of their length.
    select w.ord, w.command_id, w.is_made and row_number() over (partition by w.command_id order by w.ord) = 1,
           case when w.id is not null then pawl.command_status(w.id) else coalesce(w.kept, 'BUSY') end, w.refusal
    from (
      select i.ord, i.command_id, i.id, i.kept, i.refusal, bool_or(i.is_made) over (partition by i.id) as is_made
      from (
        select u.ord::integer, u.command_id, c.id, k.status, false,
               case when coalesce(c.type, k.type) <> u.type then
                      format('type is "%s", it was sent as "%s"', u.type, coalesce(c.type, k.type))
                    when c.payload <> coalesce(u.payload, 'null') or k.payload_hash <> pawl.payload_hash(u.payload) then
                      'payload differs from what was sent first'
                    when c.priority <> coalesce(u.priority, 4) then
                      format('priority is %s, it was sent as %s', coalesce(u.priority, 4), c.priority)
                    when c.max_attempts <> coalesce(u.max_attempts, 3) then
                      format('max_attempts is %s, it was sent as %s', coalesce(u.max_attempts, 3), c.max_attempts)
                    when c.id is not null and c.reply_to is distinct from u.reply_to then
                      format('reply_to is %s, it was sent as %s', coalesce('"' || u.reply_to || '"', 'none'),
                             coalesce('"' || c.reply_to || '"', 'none'))
                    when c.id is not null and c.correlation_id is distinct from u.correlation_id then
                      format('correlation_id is %s, it was sent as %s', coalesce('"' || u.correlation_id || '"', 'none'),
                             coalesce('"' || c.correlation_id || '"', 'none'))
                    when c.id is not null and c.order_key is distinct from u.order_key then
                      format('order_key is %s, it was sent as %s', coalesce('"' || u.order_key || '"', 'none'),
                             coalesce('"' || c.order_key || '"', 'none'))
                    when c.id is not null and not v_is_held and c.batch_id is distinct from v_batch then
                      'batch_id differs from what was sent first'
               end
        from unnest(v_ids, p_types, p_payloads, p_priorities, p_max_attempts, p_reply_to, p_correlation_ids, p_order_keys)
          with ordinality u (command_id, type, payload, priority, max_attempts, reply_to, correlation_id, order_key, ord)
        left join pawl.command c on c.command_id = u.command_id and c.domain_id = v_domain
        left join pawl.kept_key k on c.id is null and k.command_id = u.command_id and k.domain_id = v_domain
        union all
        select null, null, m, null, true, null from unnest(v_made) m
      ) i (ord, command_id, id, kept, is_made, refusal)
    ) w
    where w.ord is not null
    order by w.ord;
end
$$;

-- The same as send_items, waiting for concurrent sends. A new argument comes last and has a default; pawl.send of earlier versions, without it, is
-- dropped, or renamed to pawl.send_unordered where an object of a user is bound to it (base/retire.sql).
create or replace function pawl.send (
  p_domain text,
  p_types text[],
  p_payloads jsonb[],
  p_command_ids uuid[] default null,
  p_delays_ms bigint[] default null,
  p_priorities smallint[] default null,
  p_max_attempts smallint[] default null,
  p_reply_to text[] default null,
  p_correlation_ids text[] default null,
  p_batch_id uuid default null,
  p_actor text default null,
  p_order_keys text[] default null)
  returns table (ord integer, command_id uuid, is_new boolean, status text, refusal text)
  language sql security definer set search_path = pawl, pg_temp
as $$
  select s.ord, s.command_id, s.is_new, s.status, s.refusal
  from pawl.send_items(false, p_domain, p_types, p_payloads, p_command_ids, p_delays_ms, p_priorities, p_max_attempts, p_reply_to,
    p_correlation_ids, p_batch_id, p_actor, p_order_keys) s
$$;

-- One command. Returns its id; a refusal is raised (QU002), because no other item depends on this call.
create or replace function pawl.send (
  p_domain text,
  p_type text,
  p_payload jsonb default '{}',
  p_command_id uuid default null,
  p_delay interval default null,
  p_priority integer default null,
  p_max_attempts integer default null,
  p_reply_to text default null,
  p_correlation_id text default null,
  p_batch uuid default null,
  p_order_key text default null)
  returns uuid
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
declare
  v_sent record;
begin
  -- Before they become smallint.
  if p_priority not between 0 and 9 then
    raise exception 'priority must be from 0 to 9, got %', p_priority using errcode = 'QU001';
  end if;
  if p_max_attempts not between 1 and 1000 then
    raise exception 'max_attempts must be from 1 to 1000, got %', p_max_attempts using errcode = 'QU001';
  end if;
  select * into strict v_sent
  from pawl.send(p_domain, array[p_type], array[p_payload], array[p_command_id],
    case when p_delay is not null then array[(extract(epoch from p_delay) * 1000)::bigint] end,
    array[p_priority::smallint], array[p_max_attempts::smallint],
    case when p_reply_to is not null then array[p_reply_to] end,
    case when p_correlation_id is not null then array[p_correlation_id] end, p_batch, null,
    case when p_order_key is not null then array[p_order_key] end);
  if v_sent.refusal is not null then
    raise exception 'command % exists already: %', v_sent.command_id, v_sent.refusal using errcode = 'QU002';
  end if;
  return v_sent.command_id;
end
$$;

-- The same from texts. A literal has no type, and between a payload and an array of payloads PostgreSQL would not choose; where
-- a text is possible it takes that. So pawl.send('shop', 'charge', '{"order": 7}') is this one, and so are a driver's parameters
-- that have no type, or that of a text.
create or replace function pawl.send (
  p_domain text,
  p_type text,
  p_payload text,
  p_command_id text default null,
  p_delay text default null,
  p_priority text default null,
  p_max_attempts text default null,
  p_reply_to text default null,
  p_correlation_id text default null,
  p_batch text default null,
  p_order_key text default null)
  returns uuid
  language sql
as $$
  select pawl.send(p_domain, p_type, p_payload::jsonb, p_command_id::uuid, p_delay::interval, p_priority::integer,
    p_max_attempts::integer, p_reply_to, p_correlation_id, p_batch::uuid, p_order_key)
$$;

-- Notify the workers of a domain that it has work. pawl.send does not: PostgreSQL serialises the commits of transactions that notify,
-- on the whole server. So call it after the commit, in a transaction of its own; losing it costs 2.5 s at most.
create or replace function pawl.wake (p_domain text)
  returns void
  language plpgsql
as $$
begin
  if (p_domain ~ '^[A-Za-z0-9][A-Za-z0-9_.:-]{0,62}$') is not true then
    raise exception 'domain must be 1 to 63 letters, digits, "_", ".", ":" or "-", beginning with a letter or digit'
      using errcode = 'QU001';
  end if;
  perform pg_notify('pawl_work', p_domain);
end
$$;

-- The domains that a caller should wake after its commit, because this transaction queued commands there: names joined by commas, in the
-- setting pawl.wake, until the end of the transaction. What does not fit is found by polling.
create or replace function pawl.wake_later (p_domain_ids integer[])
  returns void
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
declare
  v_known text := coalesce(current_setting('pawl.wake', true), '');
  v_names text;
begin
  select string_agg(distinct n.name, ',') into v_names
  from (select distinct i.id from unnest(p_domain_ids) i (id)) i
  cross join lateral (select n.name from pawl.domain_name n where n.id = i.id limit 1) n
  where n.name <> all (string_to_array(v_known, ','));
  if v_names is not null and length(v_known) + length(v_names) < 4000 then
    perform set_config('pawl.wake', concat_ws(',', nullif(v_known, ''), v_names), true);
  end if;
end
$$;
