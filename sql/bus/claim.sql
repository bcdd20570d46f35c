-- claim.sql - lease commands to a worker, and requeue what is due.
--
-- Invariants: a token only grows, and settle, extend and rescue name it. A command has at most one lease.
-- Lock order: rows of ready, skipping locked ones, so that claims never wait.
-- Errors: QU001 limit or lease out of range.

-- How many of these commands, from the first on, have payloads that fit into `bytes` together as text, and what is left of that.
-- Payloads below 1000 bytes, whose length is not stored, count as 1000. An error (54000) when one cannot be delivered at all.
create or replace function pawl.claim_fitting (p_ids bigint[], inout bytes bigint, out fitting integer)
  language plpgsql stable
as $$
declare
  v_small bigint := 1000;
begin
  fitting := cardinality(p_ids);
  if v_small * fitting <= bytes
     and not exists (select from pawl.command c where c.id = any (p_ids) and c.payload_bytes is not null) then
    bytes := bytes - v_small * fitting;
    return;
  end if;
  if exists (select from pawl.command c where c.id = any (p_ids) and c.payload_bytes > 16 * 1024 * 1024) then
    raise exception 'a payload has more than 16 MiB as text' using errcode = '54000';
  end if;
  select count(*) filter (where s.total <= bytes), bytes - coalesce(max(s.total) filter (where s.total <= bytes), 0)
  into fitting, bytes
  from (select sum(coalesce(c.payload_bytes, v_small)) over (order by u.n rows unbounded preceding) as total
        from unnest(p_ids) with ordinality u (id, n)
        cross join lateral (select c.payload_bytes from pawl.command c where c.id = u.id limit 1) c) s;
end
$$;

-- A claim failed, perhaps because of one row: its payload cannot be read, or not be written out. Reads the payloads of up to p_limit
-- commands of each priority one by one and moves those that fail to the troubleshooting queue, with the reason; returns how many.
create or replace function pawl.claim_isolate (p_domain_id integer, p_limit integer, p_types text[])
  returns integer
  language plpgsql security definer set search_path = pawl, pg_temp
  set plan = keyed_cached
as $$
declare
  v_row record;
  v_reason text;
  v_moved integer := 0;
begin
  if p_limit is null or p_limit not between 1 and 10000 then
    raise exception 'limit must be from 1 to 10000' using errcode = 'QU001';
  end if;
  for v_priority in reverse 9..0 loop
    for v_row in
      select r.ctid as tid, r.id, r.attempt, r.order_key
      from pawl.ready r
      where r.domain_id = p_domain_id and r.priority = v_priority
        and (p_types is null or exists (
          select from pawl.command c where c.id = r.id and c.type = any (p_types)))
      order by r.pos
      limit p_limit
      for update skip locked
    loop
      begin
        perform pawl.payload_bytes(c.payload) from pawl.command c where c.id = v_row.id;
        continue;
      exception when others then
        if pawl.is_transient(sqlstate) or sqlstate = '55P03' then
          raise; -- says nothing about the payload
        end if;
        v_reason := format('its payload cannot be delivered: %s (SQLSTATE %s)', sqlerrm, sqlstate);
      end;
      -- One that has no key yet waits for its turn like any other.
      continue when v_row.order_key is not null
        and v_row.id <> all (pawl.order_admit(p_domain_id, array[v_row.id], array[v_row.order_key], 1));
      delete from pawl.ready r where r.ctid = v_row.tid;
      insert into pawl.tsq (id, since, domain_id, attempt, error) values (v_row.id, pawl.now(), p_domain_id, v_row.attempt, v_reason);
      insert into pawl.event (id, at, domain_id, attempt, event, details)
      values (v_row.id, pawl.now(), p_domain_id, v_row.attempt, 'MOVED_TO_TSQ', jsonb_build_object('error', v_reason));
      perform pawl.order_release(array[v_row.id]);
      v_moved := v_moved + 1;
    end loop;
  end loop;
  return v_moved;
end
$$;

-- The token for the leases of one claim: a sequence value followed by 16 random bits, so it is greater than every earlier one and does not
-- follow from them. It stays below 2^53 for 2^37 claims (4 years at 1000 per second), so that clients that read JSON numbers as
-- doubles keep every digit; larger tokens are still valid.
create or replace function pawl.lease_token ()
  returns bigint
  language sql volatile
as $$
  select (nextval('pawl.lease_seq') << 16) | ('x' || right(gen_random_uuid()::text, 4))::bit(16)::integer
$$;

-- Up to p_limit commands of one domain, highest priority first, then in the order of their positions. p_after has, for each priority
-- from 0 to 9, the position behind which the claim starts: claimers keep a cursor, so that claims do not read dead index entries
-- before it. p_types: only these; NULL for all. Fewer than the limit when their payloads are large: what is leased must reach its
-- worker, and a response too large for memory or for HTTP would cost each of them an attempt.
create or replace function pawl.claim (
  p_domain_id integer, p_limit integer, p_lease_ms integer, p_after bigint[], p_types text[], p_worker text)
  returns table (id bigint, token bigint, command_id uuid, type text, payload jsonb, attempt smallint,
                 max_attempts smallint, priority smallint, pos bigint)
  language plpgsql security definer set search_path = pawl, pg_temp
  set plan = keyed_cached
as $$
#variable_conflict use_column
declare
  v_now timestamptz;
  v_left integer := p_limit;
  v_after bigint[] := p_after;
  v_last bigint;
  v_token bigint;
  v_tids tid[];
  v_ids bigint[];
  v_keys text[];
  v_pos bigint;
  v_chunk integer;
  v_found integer;
  v_ordered integer;
  c_read_max constant integer := 20000; -- commands with order keys that one claim may park
  v_read integer := 0;
  v_admitted bigint[]; -- of those with keys
  v_bytes bigint := 8 * 1024 * 1024;
  v_is_small boolean; -- all payloads are below 1000 bytes
  v_fitting integer;
begin
  perform pawl.array_check('after', p_after, 10, 'QU001'),
          pawl.array_check('types', p_types, coalesce(cardinality(p_types), 0), 'QU001', true);
  if (p_limit between 1 and 10000 and p_lease_ms between 100 and 86400000) is not true then
    raise exception 'limit must be from 1 to 10000 and lease from 100 to 86400000 ms' using errcode = 'QU001';
  end if;
  loop
    for v_priority in reverse 9..0 loop
      v_pos := v_after[v_priority + 1];
      v_chunk := v_left;
      loop
        select array_agg(f.tid), array_agg(f.id), array_agg(f.order_key), max(f.pos), count(*), count(f.order_key), bool_and(not f.extras)
        into v_tids, v_ids, v_keys, v_pos, v_found, v_ordered, v_is_small
        from (
          select r.ctid as tid, r.id, r.pos, r.order_key, r.extras
          from pawl.ready r
          where r.domain_id = p_domain_id and r.priority = v_priority and r.pos > v_pos
            and (p_types is null or exists (
              select from pawl.command c where c.id = r.id and c.type = any (p_types)))
          order by r.pos
          limit v_chunk
          for update skip locked
        ) f;
        exit when v_found = 0;
        if v_ordered > 0 then
          v_read := v_read + v_ordered;
          select pawl.order_admit(p_domain_id, array_agg(u.id), array_agg(u.key), v_left) into v_admitted
          from unnest(v_ids, v_keys) u (id, key) where u.key is not null;
        end if;
        if v_ordered > 0 or v_found > v_left then
          select array_agg(f.tid), array_agg(f.id) into v_tids, v_ids
          from (
            select u.tid, u.id
            from unnest(v_tids, v_ids, v_keys) with ordinality u (tid, id, key, ord)
            where u.key is null or u.id = any (v_admitted)
            order by u.ord
            limit v_left
          ) f;
        end if;
        if v_tids is not null then
          if v_is_small and 1000 * cardinality(v_tids) <= v_bytes then -- nearly always
            v_fitting := cardinality(v_tids);
            v_bytes := v_bytes - 1000 * v_fitting;
          else
            select f.fitting, f.bytes into v_fitting, v_bytes from pawl.claim_fitting(v_ids, v_bytes) f;
          end if;
          v_left := v_left - cardinality(v_tids);
          if v_fitting < cardinality(v_tids) then
            v_left := 0;
            exit when v_fitting = 0 and v_token is not null;
            v_tids := v_tids[:greatest(v_fitting, 1)]; -- one goes in any case
          end if;
          v_token := coalesce(v_token, pawl.lease_token());
          v_now := pawl.now(); -- after the select: whatever it found was sent before, so the audit shows RECEIVED after SENT
          return query
            with taken as (
              -- They are locked and rows here are never updated, so they are still where they were.
              delete from pawl.ready r
              where r.ctid = any (v_tids)
              returning r.id, r.pos, r.priority, (r.attempt + 1)::smallint as attempt, r.max_attempts, r.extras
            ), leased as (
              insert into pawl.lease (id, token, until, domain_id, priority, attempt, max_attempts, extras, started_at, worker)
              select t.id, v_token, v_now + p_lease_ms * interval '1 ms', p_domain_id, t.priority, t.attempt, t.max_attempts, t.extras, v_now, p_worker
              from taken t
            )
            select t.id, v_token, c.command_id, c.type, c.payload, t.attempt, t.max_attempts, t.priority, t.pos
            from taken t
            join pawl.command c on c.id = t.id
            order by t.pos;
        end if;
        if v_read >= c_read_max then
          v_left := 0;
        end if;
        -- Only commands that were not admitted leave it with fewer than it asked for.
        exit when v_left = 0 or v_ordered = 0 or v_found < v_chunk;
        v_chunk := case when v_tids is null then greatest(v_left, least(v_chunk * 2, 5000)) else v_left end;
      end loop;
      exit when v_left = 0;
    end loop;
    exit when v_token is not null;
    -- A cursor beyond the last position that was given out is from before a restore or failover: nothing would be found at it until
    -- the sequence has caught up.
    select case when s.is_called then s.last_value else s.last_value - 1 end into v_last from pawl.command_seq s;
    exit when not exists (select from unnest(v_after) a where a > v_last);
    v_after := array_fill(0::bigint, array[10]);
  end loop;
end
$$;

-- Keep what is still ours for longer. A command whose cancellation was asked for ends here: verdict CANCELED.
-- Verdicts: EXTENDED, CANCELED, LOST (another token, or no lease at all), BUSY (another transaction has it locked, such as a
-- pawl.cancel that is not committed yet: it is still the caller's; nothing was done).
create or replace function pawl.extend (p_ids bigint[], p_tokens bigint[], p_lease_ms integer)
  returns table (ord integer, verdict text)
  language plpgsql security definer set search_path = pawl, pg_temp
  set plan = keyed_cached
as $$
#variable_conflict use_column
declare
  v_now timestamptz := pawl.now();
  v_kept bigint[];
  v_tids tid[];
  v_ended bigint[];
  v_canceled bigint[];
begin
  p_tokens := pawl.lease_tokens(p_ids, p_tokens);
  if (p_lease_ms between 100 and 86400000) is not true then
    raise exception 'lease must be from 100 to 86400000 ms' using errcode = 'QU001';
  end if;
  -- One index lookup per item, by lateral: a join could scan the leases first, with the dead entries of all that have ended.
  select array_agg(h.ord) filter (where not h.cancel), array_agg(h.tid) filter (where not h.cancel),
         array_agg(h.ord) filter (where h.cancel), array_agg(h.id) filter (where h.cancel)
  into v_kept, v_tids, v_ended, v_canceled
  from (
    select i.ord, i.id, l.tid, l.cancel
    from (select u.* from unnest(p_ids, p_tokens) with ordinality u (id, token, ord) order by u.id) i
    cross join lateral (
      select l.ctid as tid, l.cancel from pawl.lease l where l.id = i.id and l.token = i.token for update skip locked) l
  ) h;
  if v_canceled is not null then
    perform pawl.finish(v_canceled, 'CANCELED', 'CANCELED', null, 'canceled while it ran', null);
  end if;
  update pawl.lease l set until = v_now + p_lease_ms * interval '1 ms' where l.ctid = any (v_tids);
  return query
    -- By grouping, because row by row a join of two lists takes the square of their length.
    select v.ord::integer, coalesce(max(v.verdict), 'LOST')
    from (
      select k, 'EXTENDED' from unnest(v_kept) k
      union all
      select e, 'CANCELED' from unnest(v_ended) e
      union all
      select u.ord, 'BUSY' -- the lowest of them, so that what was extended is not called so
      from unnest(p_ids, p_tokens) with ordinality u (id, token, ord)
      cross join lateral (select from pawl.lease l where l.id = u.id and l.token = u.token limit 1) l
      where coalesce(cardinality(v_kept), 0) + coalesce(cardinality(v_ended), 0) < cardinality(p_ids)
      union all
      select n, null from generate_series(1, cardinality(p_ids)) n
    ) v (ord, verdict)
    group by v.ord
    order by v.ord;
end
$$;

-- Requeue what is due: delayed commands, and leases that have expired. In batches; any number of pods may call it at the same time.
-- p_since: leases that expired before this have been read, so that the scan does not begin at the oldest dead entry.
-- p_due_since: no command that was due before this is left, so that the scan does not read index entries of deleted rows that cannot
-- be vacuumed yet.
-- next_ms: when something is due next, at most p_most_ms from now, and 0 when there is more to do. looked: the time of the call.
-- due_left: the first command from p_due_since on that was due and is still there: another process moves it, or the limit was reached.
-- running, oldest: for the proof that nothing due before `looked` appears any more. A transaction that delays commands holds the
-- allocation lock (base/allocation.sql) and reads the clock under it. So what is due before `looked` and cannot be seen yet belongs to
-- a transaction below `running`; once `oldest` of a later call has reached that, the call sees it.
create or replace function pawl.requeue_due (
  p_limit integer, p_since timestamptz, p_most_ms integer, p_due_since timestamptz default '-infinity',
  out moved integer, out next_ms integer, out looked timestamptz, out due_left timestamptz, out running bigint, out oldest bigint)
  language plpgsql security definer set search_path = pawl, pg_temp
  set plan = keyed_cached
as $$
declare
  v_most timestamptz;
  v_next timestamptz;
  v_ids bigint[];
begin
  if (p_limit between 1 and 100000 and p_most_ms between 0 and 86400000 and p_since is not null and p_due_since is not null) is not true then
    raise exception 'limit must be from 1 to 100000, most_ms from 0 to 86400000, since and due_since not null' using errcode = 'QU001';
  end if;
  looked := pawl.now();
  v_most := looked + p_most_ms * interval '1 ms';
  -- Not the snapshot's xmax: that is one more than the last id that has ended, and a transaction that is open may be above it.
  running := pawl.allocation_bound();
  oldest := pawl.allocation_oldest(2, running);
  v_ids := array(
    select d.id from pawl.delayed d where d.due >= p_due_since and d.due <= looked
    order by d.due limit p_limit for update skip locked);
  moved := pawl.requeue_apart('delayed', v_ids, looked);
  -- No lease is longer than a day: the clock was ahead when these were given. They get their time from now on; a worker that lives extends them.
  update pawl.lease l set until = looked + least(l.until - l.started_at, interval '1 day')
  where l.id = any (array(
    select l.id from pawl.lease l where l.until > looked + interval '25 hours' order by l.until desc limit p_limit for update skip locked));
  v_ids := array(
    select l.id from pawl.lease l where l.until < looked and l.until >= p_since
    order by l.until limit p_limit for update skip locked);
  moved := moved + pawl.requeue_apart('lease', v_ids, looked);
  perform pawl.batch_sweep(100), pawl.order_resume(100);
  due_left := (
    select d.due from pawl.delayed d where d.due >= p_due_since and d.due <= looked order by d.due limit 1);
  -- Not beyond v_most: most index entries behind it belong to leases that were settled long before they would expire.
  v_next := case when moved >= p_limit then looked else least(
    (select d.due from pawl.delayed d where d.due > looked and d.due < v_most order by d.due limit 1),
    (select l.until from pawl.lease l where l.until >= looked and l.until < v_most order by l.until limit 1),
    v_most) end;
  next_ms := ceil(extract(epoch from v_next - looked) * 1000);
end
$$;

-- Move commands that the caller has locked back to ready. One that fails stops none beside it: what fails together is halved
-- until it is alone, stays where it is, and is due again after a minute. Returns how many were moved.
create or replace function pawl.requeue_apart (p_from text, p_ids bigint[], p_now timestamptz)
  returns integer
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
declare
  v_count integer := cardinality(p_ids);
begin
  if v_count = 0 then
    return 0;
  end if;
  begin
    if p_from = 'delayed' then
      perform pawl.requeue_delayed(p_ids);
    else
      perform pawl.rescue(p_ids, p_now);
    end if;
    return v_count;
  exception when others then
    if pawl.is_transient(sqlstate) then
      raise;
    end if;
    if v_count = 1 then
      raise warning 'command number % cannot be requeued: %', p_ids[1], sqlerrm;
    end if;
  end;
  if v_count > 1 then
    return pawl.requeue_apart(p_from, p_ids[:v_count / 2], p_now) + pawl.requeue_apart(p_from, p_ids[v_count / 2 + 1:], p_now);
  end if;
  if p_from = 'delayed' then
    update pawl.delayed d set due = p_now + interval '1 min' where d.id = p_ids[1];
  else
    update pawl.lease l set until = p_now + interval '1 min' where l.id = p_ids[1];
  end if;
  return 0;
end
$$;

create or replace function pawl.requeue_delayed (p_ids bigint[])
  returns void
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
declare
  v_deleted bigint;
  v_inserted bigint;
  v_domains integer[];
begin
  perform pawl.allocation_lock(2);
  with due as (
    delete from pawl.delayed d where d.id = any (p_ids) returning d.*
  ), queued as (
    insert into pawl.ready (domain_id, priority, pos, id, attempt, max_attempts, extras)
    select d.domain_id, d.priority, nextval('pawl.command_seq'), d.id, d.attempt, d.max_attempts, d.extras
    from (select * from due order by due.due) d
    returning domain_id
  )
  select (select count(*) from due), (select count(*) from queued), array(select distinct q.domain_id from queued q)
  into v_deleted, v_inserted, v_domains;
  perform pawl.moved(v_deleted, v_inserted);
  perform pawl.wake_later(v_domains);
end
$$;

-- Expired leases: queued again while attempts are left, else to the troubleshooting queue. A crash counts as an attempt, so the
-- number of workers that one command can kill is bounded.
create or replace function pawl.rescue (p_ids bigint[], p_now timestamptz)
  returns integer
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
declare
  v_exhausted bigint[] := array(
    select l.id from pawl.lease l where l.id = any (p_ids) and l.attempt >= l.max_attempts and not l.cancel);
  v_canceled bigint[] := array(select l.id from pawl.lease l where l.id = any (p_ids) and l.cancel);
  v_deleted bigint;
  v_inserted bigint;
  v_domains integer[];
begin
  if cardinality(v_exhausted) > 0 then
    perform pawl.give_up(v_exhausted, 'its worker was lost, and no attempt is left');
  end if;
  perform pawl.allocation_lock(2);
  with lost as (
    delete from pawl.lease l
    where l.id = any (p_ids) and l.attempt < l.max_attempts and not l.cancel
    returning l.*
  ), queued as (
    insert into pawl.ready (domain_id, priority, pos, id, attempt, max_attempts, extras)
    select l.domain_id, l.priority, nextval('pawl.command_seq'), l.id, l.attempt, l.max_attempts, l.extras
    from lost l
    returning domain_id
  ), recorded as (
    insert into pawl.event (id, at, domain_id, attempt, event, actor, details)
    select l.id, e.at, l.domain_id, l.attempt, e.event, e.actor, e.details
    from lost l
    cross join lateral (values (l.started_at, 'RECEIVED', l.worker, null::jsonb),
                               (p_now, 'RETRY_SCHEDULED', null, '{"reason": "its worker was lost"}')) e (at, event, actor, details)
  )
  select (select count(*) from lost), (select count(*) from queued), array(select distinct q.domain_id from queued q)
  into v_deleted, v_inserted, v_domains;
  perform pawl.moved(v_deleted, v_inserted);
  perform pawl.wake_later(v_domains);
  if cardinality(v_canceled) > 0 then
    perform pawl.finish(v_canceled, 'CANCELED', 'CANCELED', null, 'canceled while it ran', null);
  end if;
  return cardinality(p_ids);
end
$$;

-- What a claimer needs to move its low watermark: see bus/claim.h. Numbers up to `allocated` were allocated by transactions older
-- than `running`; once `oldest` has reached it they are all decided (base/allocation.sql). firsts: the first row that is there, of each priority,
-- behind the watermark; rows that an open claim has locked still count, so they are found again when its transaction aborts.
create or replace function pawl.decided_position (
  p_domain_id integer, p_floors bigint[], p_types text[],
  out allocated bigint, out running bigint, out oldest bigint, out firsts bigint[])
  language plpgsql volatile security definer set search_path = pawl, pg_temp
  set plan = keyed_cached
as $$
begin
  perform pawl.array_check('floors', p_floors, 10, 'QU001'),
          pawl.array_check('types', p_types, coalesce(cardinality(p_types), 0), 'QU001', true);
  -- In this order: a transaction that allocated one of these numbers has an older id than ours, and either holds the allocation lock or
  -- has ended before the snapshot of the scan.
  select case when s.is_called then s.last_value else s.last_value - 1 end into allocated from pawl.command_seq s;
  running := pawl.allocation_bound();
  oldest := pawl.allocation_oldest(2, running);
  select array(select (select r.pos
                       from pawl.ready r
                       where r.domain_id = p_domain_id and r.priority = p.priority and r.pos > p_floors[p.priority + 1]
                         and (p_types is null or exists (
                           select from pawl.command c where c.id = r.id and c.type = any (p_types)))
                       order by r.pos
                       limit 1)
               from generate_series(0, 9) p (priority)
               order by p.priority)
  into firsts;
end
$$;
