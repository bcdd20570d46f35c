-- claim.sql - lease commands to a worker, and requeue what is due.
--
-- Invariant: a command has at most one lease.
-- Lock order: rows of ready, skipping locked ones, so that claims never wait.
-- Errors: QU001 limit, lease or the name of a worker out of range.

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
  if exists (select from pawl.command c where c.id = any (p_ids) and c.payload_bytes > pawl.json_max()) then
    raise exception 'a payload has more than 16 MiB as text' using errcode = '54000';
  end if;
  select count(*) filter (where s.total <= bytes), bytes - coalesce(max(s.total) filter (where s.total <= bytes), 0)
  into fitting, bytes
  from (select sum(coalesce(c.payload_bytes, v_small)) over (order by u.n rows unbounded preceding) as total
        from unnest(p_ids) with ordinality u (id, n)
        cross join lateral (select c.payload_bytes from pawl.command c where c.id = u.id limit 1) c) s;
end
$$;

-- A row of pawl.ready, which is locked: moves it to the troubleshooting queue, with the reason, if its payload cannot be read. Returns how many it moved.
create or replace function pawl.claim_isolate_one (p_domain_id integer, p_tid tid, p_id bigint, p_order_key text)
  returns bigint
  language plpgsql
as $$
declare
  v_reason text;
begin
  begin
    perform pawl.payload_bytes(c.payload) from pawl.command c where c.id = p_id;
    return 0;
  exception when others then
    if pawl.is_transient(sqlstate) or sqlstate = '55P03' then
      raise; -- says nothing about the payload
    end if;
    v_reason := format('its payload cannot be delivered: %s (SQLSTATE %s)', sqlerrm, sqlstate);
  end;
  -- One that has no key yet waits for its turn like any other.
  if p_order_key is not null and p_id <> all (pawl.order_admit(p_domain_id, array[p_id], array[p_order_key], 1)) then
    return 0;
  end if;
  return pawl.give_up(array[p_id], v_reason, array[p_tid]);
end
$$;

-- A claim failed, perhaps because of one row: its payload cannot be read, or not be written out. Reads the payloads of up to p_limit
-- commands of each priority, and of each of the next lines, one by one and moves those that fail to the troubleshooting queue, with the reason; returns
-- how many.
create or replace function pawl.claim_isolate (p_domain_id integer, p_limit integer, p_types text[])
  returns integer
  language plpgsql security definer set search_path = pawl, pg_temp
  set plan = keyed_cached
as $$
declare
  c_lines constant integer := 100; -- as many as a claim may take commands of
  v_row record;
  v_moved integer := 0;
begin
  if p_limit is null or p_limit not between 1 and 10000 then
    raise exception 'limit must be from 1 to 10000' using errcode = 'QU001';
  end if;
  for v_priority in reverse 9..0 loop
    for v_row in
      select r.ctid as tid, r.id, r.order_key
      from pawl.ready r
      where r.domain_id = p_domain_id and r.priority = v_priority
        and (p_types is null or exists (
          select from pawl.command c where c.id = r.id and c.type = any (p_types)))
      order by r.pos
      limit p_limit
      for update skip locked
    loop
      v_moved := v_moved + pawl.claim_isolate_one(p_domain_id, v_row.tid, v_row.id, v_row.order_key);
    end loop;
  end loop;
  for v_row in
    select r.tid, r.id
    from (select l.id, l.low from pawl.line l
          where l.domain_id = p_domain_id and (p_types is null or l.type = any (p_types)) order by l.turn_at limit c_lines) l
    cross join lateral (
      select r.ctid as tid, r.id from pawl.ready r where r.line = l.id and r.pos > l.low
      order by r.pos limit least(p_limit, c_lines) for update skip locked) r
  loop
    v_moved := v_moved + pawl.claim_isolate_one(p_domain_id, v_row.tid, v_row.id, null);
  end loop;
  return v_moved;
end
$$;

-- The last queue position that was allocated.
create or replace function pawl.allocated ()
  returns bigint
  language plpgsql volatile
as $$
begin
  return (select case when s.is_called then s.last_value else s.last_value - 1 end from pawl.command_seq s);
end
$$;

-- Of those of the found commands that have keys, the admitted ones, and all others; at most p_limit.
create or replace function pawl.claim_admit (
  p_domain_id integer, p_limit integer, p_keys text[], inout tids tid[], inout ids bigint[])
  language plpgsql
as $$
declare
  v_admitted bigint[];
begin
  select pawl.order_admit(p_domain_id, array_agg(u.id), array_agg(u.key), p_limit) into v_admitted
  from unnest(ids, p_keys) u (id, key) where u.key is not null having count(*) > 0;
  select array_agg(f.tid), array_agg(f.id) into tids, ids
  from (
    select u.tid, u.id
    from unnest(tids, ids, p_keys) with ordinality u (tid, id, key, ord)
    where u.key is null or u.id = any (v_admitted)
    order by u.ord
    limit p_limit
  ) f;
end
$$;

-- Of the found commands those that may be leased now, at most as many as there are before the first one that would have to be begun at once and cannot.
-- A crash of the worker costs each command that it has leased an attempt, begun or not. So a command is leased ahead of the handler that begins it
-- only if its last attempt was not lost in this way, and if this one is not its last. Lost commands in their last attempt have no other lost command
-- beside them in their worker: if the worker is lost again, they were the cause. Those that may not be leased for this reason are passed over.
-- p_begin: how many can be begun at once; null: all. lost: how many lost commands the worker has; null: one that must be alone.
-- found_lost: the lost ones that may be leased. has_last: some are in their last attempt. is_cut: some were found behind them.
create or replace function pawl.claim_careful (
  p_begin integer, inout lost integer, inout tids tid[], inout ids bigint[], out found_lost bigint[],
  out has_last boolean, out is_cut boolean)
  language plpgsql
as $$
declare
  v_row record;
  v_tids tid[];
  v_ids bigint[];
  v_count integer := 0;
begin
  has_last := false;
  is_cut := false;
  for v_row in
    select u.tid, u.id, r.attempt + 1 >= r.max_attempts as is_last,
           exists (select from pawl.lost_attempt l where l.id = u.id and l.attempt = r.attempt) as is_lost
    from unnest(tids, ids) with ordinality u (tid, id, ord)
    cross join lateral (select r.attempt, r.max_attempts from pawl.ready r where r.ctid = u.tid) r
    order by u.ord
  loop
    continue when v_row.is_lost and (lost is null or v_row.is_last and lost > 0);
    is_cut := coalesce((v_row.is_lost or v_row.is_last) and v_count >= p_begin, false);
    exit when is_cut;
    v_count := v_count + 1;
    v_tids[v_count] := v_row.tid;
    v_ids[v_count] := v_row.id;
    has_last := has_last or v_row.is_last;
    if v_row.is_lost then
      found_lost := found_lost || v_row.id;
      lost := case when not v_row.is_last then lost + 1 end;
    end if;
  end loop;
  tids := v_tids;
  ids := v_ids;
end
$$;

-- The next p_count rows of a domain, from p_priority down, each priority from behind its position in p_after. priority: the one in which they end; null:
-- there are fewer. after: the last position of each priority with them; of those without, as in p_after.
create or replace function pawl.claim_window (
  p_domain_id integer, p_priority integer, p_after bigint[], p_count integer, out priority smallint, out after bigint[])
  language plpgsql
as $$
#variable_conflict use_column
begin
  with found as materialized (
    select r.priority, max(r.pos) as pos, count(*) as count
    from (
      select r.priority, r.pos
      from generate_series(p_priority, 0, -1) p (priority)
      cross join lateral (
        select r.priority, r.pos
        from pawl.ready r
        where r.domain_id = p_domain_id and r.priority = p.priority and r.pos > p_after[p.priority + 1]
        order by r.pos
        limit p_count
      ) r
      limit p_count
    ) r
    group by r.priority
  )
  select (select min(f.priority) from found f having sum(f.count) = p_count),
         array(select coalesce((select f.pos from found f where f.priority = p.priority), p_after[p.priority + 1])
               from generate_series(0, 9) p (priority)
               order by p.priority)
  into priority, after;
end
$$;

-- Finds and locks the rows that pawl.claim leases. p_limit 0: nothing is done, and tids is null. Parks commands whose order keys other commands have. lost: those whose last attempt was lost.
-- has_last: some are in their last attempt.
-- One statement reads all priorities: a claim of one command would spend most of its time on starting a statement for each.
-- p_read: read at most so many rows, of any type; null: all. They are read in growing windows, whose end is found first, so that a claim that finds
-- its types at once reads few. after: when it found none in them, the positions of all priorities, from 0 on, behind which it has not read; null: it has
-- found some, or read to the end of the queue.
create or replace function pawl.claim_find (
  p_domain_id integer, p_limit integer, p_after bigint[], p_types text[], p_begin integer, p_lost integer, p_read integer,
  out tids tid[], out lost bigint[], out has_last boolean, out after bigint[])
  language plpgsql
as $$
#variable_conflict use_column
declare
  c_read_max constant integer := 20000; -- commands with order keys that one claim may park
  v_left integer := p_limit;
  v_bytes bigint := 8 * 1024 * 1024;
  v_read integer := 0;
  v_after bigint[] := p_after;
  v_priority integer := 9; -- the highest that is left to read
  v_pos bigint;
  v_unread integer := p_read;
  v_window integer := 32; -- so many rows are read at a time
  v_end_priority integer; -- in which the window ends; null: it has no end
  v_ends bigint[]; -- the last positions of each priority in the window
  v_tids tid[];
  v_ids bigint[];
  v_keys text[];
  v_chunk integer := p_limit;
  v_found integer;
  v_ordered integer;
  v_is_small boolean; -- all payloads are below 1000 bytes
  v_is_careful boolean; -- some have been leased before, or have one attempt
  v_is_cut boolean := false;
  v_lost integer := p_lost;
  v_found_lost bigint[];
  v_has_last boolean;
  v_fitting integer;
begin
  if p_limit = 0 then
    return;
  end if;
  tids := '{}';
  lost := '{}';
  has_last := false;
  loop
    if v_unread is not null then
      v_window := least(greatest(v_window, v_chunk), v_unread);
      select e.priority, e.after into v_end_priority, v_ends
      from pawl.claim_window(p_domain_id, v_priority, v_after, v_window) e;
      v_unread := v_unread - v_window;
      v_window := 4 * v_window;
    end if;
    select array_agg(f.tid), array_agg(f.id), array_agg(f.order_key), count(*), count(f.order_key), bool_and(not f.extras),
           bool_or(f.is_careful)
    into v_tids, v_ids, v_keys, v_found, v_ordered, v_is_small, v_is_careful
    from (
      -- A lower priority is read only when the higher ones have fewer rows than wanted: the outer limit ends the loop over priorities.
      select r.tid, r.id, r.order_key, r.extras, r.is_careful
      from generate_series(v_priority, coalesce(v_end_priority, 0), -1) p (priority)
      cross join lateral (
        select r.ctid as tid, r.id, r.order_key, r.extras, r.attempt > 0 or r.max_attempts = 1 as is_careful
        from pawl.ready r
        where r.domain_id = p_domain_id and r.priority = p.priority and r.pos > v_after[p.priority + 1]
          and r.pos <= case when p.priority = v_end_priority then v_ends[p.priority + 1] else 9223372036854775807 end
          and (p_types is null or exists (
            select from pawl.command c where c.id = r.id and c.type = any (p_types)))
        order by r.pos
        limit v_chunk
        for update skip locked
      ) r
      limit v_chunk
    ) f;
    exit when v_found = 0 and v_end_priority is null;
    if v_ordered > 0 or v_is_careful or v_found > v_left then
      v_read := v_read + v_ordered;
      select r.priority, r.pos into v_priority, v_pos from pawl.ready r where r.ctid = v_tids[v_found];
      v_after := v_after[:v_priority] || v_pos || (coalesce(v_ends, v_after))[v_priority + 2:];
      select a.tids, a.ids into v_tids, v_ids from pawl.claim_admit(p_domain_id, v_left, v_keys, v_tids, v_ids) a;
    end if;
    if v_is_careful and v_tids is not null then
      v_read := v_read + cardinality(v_tids);
      select c.lost, c.tids, c.ids, c.found_lost, c.has_last, c.is_cut into v_lost, v_tids, v_ids, v_found_lost, v_has_last, v_is_cut
      from pawl.claim_careful(p_begin - cardinality(tids), v_lost, v_tids, v_ids) c;
      lost := lost || v_found_lost;
      has_last := has_last or v_has_last;
    end if;
    if v_tids is not null then
      v_fitting := cardinality(v_tids);
      v_left := v_left - v_fitting;
      if v_is_small and 1000 * v_fitting <= v_bytes then -- nearly always
        v_bytes := v_bytes - 1000 * v_fitting;
      else
        select f.fitting, f.bytes into v_fitting, v_bytes from pawl.claim_fitting(v_ids, v_bytes) f;
      end if;
      if v_fitting < cardinality(v_tids) then -- the first of all goes in any case
        tids := tids || v_tids[:case when cardinality(tids) = 0 then greatest(v_fitting, 1) else v_fitting end];
        return;
      end if;
      tids := tids || v_tids;
    end if;
    -- Only commands that were not admitted or were passed over leave it with fewer than it asked for.
    exit when v_left = 0 or v_is_cut or v_read >= c_read_max;
    if v_found < v_chunk or (v_ordered = 0 and not v_is_careful) then
      exit when v_end_priority is null;
      v_priority := v_end_priority;
      v_after := v_ends;
    end if;
    if v_unread = 0 then
      if cardinality(tids) = 0 then
        after := v_after;
      end if;
      exit;
    end if;
    v_chunk := case when v_tids is null then greatest(v_left, least(v_chunk * 2, 5000)) else v_left end;
  end loop;
end
$$;

-- Up to p_limit commands of one domain, highest priority first, then in the order of their positions. p_after has, for each priority
-- from 0 to 9, the position behind which the claim starts: claimers keep a cursor, so that claims do not read dead index entries
-- before it. p_types: only these; NULL for all. Fewer than the limit when their payloads are large: what is leased must reach its
-- worker, and a response too large for memory or for HTTP would cost each of them an attempt. p_workers: the worker of the first command, of the
-- second and so on, where one claim serves several; NULL: all are for p_worker. p_begin, p_lost: how many of them can be begun at once, and how many
-- commands the worker has whose last attempt was lost, with NULLs as of pawl.claim_careful.
-- p_unflushed: as of pawl.lease_commit. After a crash that has undone the claim the row that the token names is gone, and the command is claimed again as
-- if it had not been. A last attempt must not be had twice.
-- progress: the last report of the attempts before; null: there is none.
-- A domain that is paused or limited is claimed as pawl.claim_gated says.
-- p_read: of a claim of some types, read at most so many commands; null: all. When none of them may be leased and more are queued, there are ten rows with
-- null ids: for each priority the position behind which a next claim has to go on.
create or replace function pawl.claim (
  p_domain_id integer, p_limit integer, p_lease_ms integer, p_after bigint[], p_types text[], p_worker text, p_workers text[] default null,
  p_begin integer default null, p_lost integer default 0, p_unflushed boolean default false, p_read integer default null)
  returns table (id bigint, token bigint, command_id uuid, type text, payload jsonb, attempt smallint,
                 max_attempts smallint, priority smallint, pos bigint, progress jsonb, lost boolean)
  language plpgsql security definer set search_path = pawl, pg_temp
  set plan = keyed_cached
as $$
#variable_conflict use_column
declare
  v_tids tid[];
  v_lost bigint[];
  v_has_last boolean;
  v_after bigint[];
  v_token bigint;
  v_now timestamptz;
begin
  perform pawl.array_check('after', p_after, 10, 'QU001'),
          pawl.array_check('types', p_types, coalesce(cardinality(p_types), 0), 'QU001', true);
  if (p_limit between 1 and 10000 and p_lease_ms between 100 and 86400000) is not true then
    raise exception 'limit must be from 1 to 10000 and lease from 100 to 86400000 ms' using errcode = 'QU001';
  end if;
  perform pawl.array_check('workers', p_workers, p_limit, 'QU001', true), pawl.actor_check('worker', p_worker);
  if p_workers is not null then -- most claims serve one, and start no query for it
    perform pawl.actor_check('workers', w) from unnest(p_workers) w where (octet_length(w) between 1 and 400) is not true;
  end if;
  if p_begin < 0 or p_lost < 0 then
    raise exception 'begin and lost must be from 0 on' using errcode = 'QU001';
  end if;
  if p_read < 1 then
    raise exception 'read must be from 1 on' using errcode = 'QU001';
  end if;
  -- The gate is looked for in this statement, because one of its own would take longer.
  select f.tids, f.lost, f.has_last, f.after into v_tids, v_lost, v_has_last, v_after
  from pawl.claim_find(
    p_domain_id, case when exists (select from pawl.gate g where g.domain_id = p_domain_id) then 0 else p_limit end, p_after, p_types, p_begin, p_lost,
    case when p_types is not null then p_read end) f;
  if v_tids is null then
    return query
      select * from pawl.claim_gated(p_domain_id, p_limit, p_lease_ms, p_after, p_types, p_worker, p_workers, p_begin, p_lost, p_unflushed);
    return;
  end if;
  if v_after is not null then
    for v_priority in 0..9 loop
      priority := v_priority;
      pos := v_after[v_priority + 1];
      return next;
    end loop;
    return;
  end if;
  if cardinality(v_tids) = 0 then
    -- A cursor beyond the last position that was given out is from before a restore or failover: nothing would be found at it until
    -- the sequence has caught up.
    if (pawl.allocated() < any (p_after)) is not true then
      return;
    end if;
    select f.tids, f.lost, f.has_last into v_tids, v_lost, v_has_last
    from pawl.claim_find(p_domain_id, p_limit, array_fill(0::bigint, array[10]), p_types, p_begin, p_lost, null) f;
  end if;
  perform pawl.lease_commit(p_unflushed, v_has_last);
  v_token := pawl.lease_token();
  v_now := pawl.now(); -- after the rows were found: whatever was found was sent before, so the audit shows RECEIVED after SENT
  return query
    with taken as (
      -- They are locked and rows here are never updated, so they are still where they were.
      delete from pawl.ready r
      where r.ctid = any (v_tids)
      returning r.id, r.pos, r.priority, (r.attempt + 1)::smallint as attempt, r.max_attempts, r.extras
    ), numbered as (
      select t.*, row_number() over (order by t.priority desc, t.pos) as number from taken t
    ), leased as (
      insert into pawl.lease (id, token, until, domain_id, priority, attempt, max_attempts, extras, started_at, worker, lease_ms)
      select t.id, v_token, v_now + p_lease_ms * interval '1 ms', p_domain_id, t.priority, t.attempt, t.max_attempts, t.extras, v_now,
             case when p_workers is null then p_worker else p_workers[t.number] end, p_lease_ms
      from numbered t
    )
    select t.id, v_token, c.command_id, c.type, c.payload, t.attempt, t.max_attempts, t.priority, t.pos, g.progress, t.id = any (v_lost)
    from numbered t
    join pawl.command c on c.id = t.id
    left join lateral ( -- read only for commands that have returned to the queue: the others have had no attempt
      select pawl.progress_object(g.step, g.attempt, g.percent, g.text, g.at) as progress
      from pawl.progress g where g.id = t.id and t.pos <> t.id limit 1) g on true
    order by t.number;
end
$$;

-- Requeue what is due: delayed commands, and leases that have expired. In batches; any number of pods may call it at the same time. What is due by
-- attached rows (app/attached.sql) is for pawl.attached_due, in a transaction of its own, because that may wait for locks.
-- p_since: leases that expired before this have been read, so that the scan does not begin at the oldest dead entry. A caller that has read none, and one
-- that has read later ones than the clock shows, which was set back, has leases corrected: see pawl.lease_correct.
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
  v_corrected integer := 0;
begin
  if (p_limit between 1 and 100000 and p_most_ms between 0 and 86400000 and p_since is not null and p_due_since is not null) is not true then
    raise exception 'limit must be from 1 to 100000, most_ms from 0 to 86400000, since and due_since not null' using errcode = 'QU001';
  end if;
  looked := pawl.now();
  v_most := looked + p_most_ms * interval '1 ms';
  -- Not the snapshot's xmax: that is one more than the last id that has ended, and a transaction that is open may be above it.
  running := pawl.allocation_bound();
  oldest := pawl.allocation_oldest('pawl.command_allocation', running);
  v_ids := array(
    select d.id from pawl.delayed d where d.due >= p_due_since and d.due <= looked
    order by d.due limit p_limit for update skip locked);
  moved := pawl.requeue_apart('delayed', v_ids, looked);
  if p_since <= 'epoch' or p_since > looked then
    v_corrected := pawl.lease_correct(p_limit, looked);
  end if;
  v_ids := pawl.lease_extended_late(array(
    select l.id from pawl.lease l where l.until < looked and l.until >= p_since
    order by l.until limit p_limit for update skip locked), looked);
  moved := moved + pawl.requeue_apart('lease', v_ids, looked);
  perform pawl.batch_sweep(100), pawl.order_resume(100);
  due_left := (
    select d.due from pawl.delayed d where d.due >= p_due_since and d.due <= looked order by d.due limit 1);
  -- Not beyond v_most: most index entries behind it belong to leases that were settled long before they would expire.
  v_next := case when moved >= p_limit or v_corrected >= p_limit then looked else least(
    pawl.attached_due_next(looked, v_most),
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
  perform pawl.command_allocation_lock();
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

-- The error of commands whose last worker was lost.
create or replace function pawl.worker_lost_error ()
  returns text
  language sql immutable
as $$
  select 'its worker was lost, and no attempt is left'
$$;

-- Expired leases: queued again while attempts are left, else to the troubleshooting queue. A crash counts as an attempt, so the
-- number of workers that one command can kill is bounded. It counts for all that the worker had leased, begun or not: see pawl.claim_careful.
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
    perform pawl.give_up(v_exhausted, pawl.worker_lost_error());
  end if;
  perform pawl.command_allocation_lock();
  with lost as (
    delete from pawl.lease l
    where l.id = any (p_ids) and l.attempt < l.max_attempts and not l.cancel
    returning l.*
  ), queued as (
    insert into pawl.ready (domain_id, priority, pos, id, attempt, max_attempts, extras)
    select l.domain_id, l.priority, nextval('pawl.command_seq'), l.id, l.attempt, l.max_attempts, l.extras
    from lost l
    returning domain_id
  ), noted as (
    insert into pawl.lost_attempt as a (id, attempt) select l.id, l.attempt from lost l
    on conflict (id) do update set attempt = excluded.attempt
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
    perform pawl.finish_canceled(v_canceled);
  end if;
  return cardinality(p_ids);
end
$$;

-- What a claimer needs to move its low watermark: see bus/claim.h. Numbers up to `allocated` were allocated by transactions older
-- than `running`; once `oldest` has reached it they are all decided (base/allocation.sql). firsts: the first row that is there, of each priority,
-- behind the watermark; rows that an open claim has locked still count, so they are found again when its transaction aborts.
-- p_read: of some types, read at most so many rows, as pawl.claim does; null: all. The first of a priority is not before the end of what was read of it.
create or replace function pawl.decided_position (
  p_domain_id integer, p_floors bigint[], p_types text[], p_read integer default null,
  out allocated bigint, out running bigint, out oldest bigint, out firsts bigint[])
  language plpgsql volatile security definer set search_path = pawl, pg_temp
  set plan = keyed_cached
as $$
begin
  perform pawl.array_check('floors', p_floors, 10, 'QU001'),
          pawl.array_check('types', p_types, coalesce(cardinality(p_types), 0), 'QU001', true);
  if p_read < 1 then
    raise exception 'read must be from 1 on' using errcode = 'QU001';
  end if;
  -- In this order: a transaction that allocated one of these numbers has an older id than ours, and either holds the allocation lock or
  -- has ended before the snapshot of the scan.
  allocated := pawl.allocated();
  running := pawl.allocation_bound();
  oldest := pawl.allocation_oldest('pawl.command_allocation', running);
  if p_types is not null and p_read is not null then
    with read as materialized (
      select r.priority, r.pos, row_number() over () = p_read as is_end,
             exists (select from pawl.command c where c.id = r.id and c.type = any (p_types)) as is_found
      from (
        select r.priority, r.pos, r.id
        from generate_series(9, 0, -1) p (priority)
        cross join lateral (
          select r.priority, r.pos, r.id
          from pawl.ready r
          where r.domain_id = p_domain_id and r.priority = p.priority and r.pos > p_floors[p.priority + 1]
          order by r.pos
          limit p_read
        ) r
        limit p_read
      ) r
    ), found as materialized (
      select r.priority, min(case when r.is_found then r.pos else r.pos + 1 end) filter (where r.is_found or r.is_end) as pos,
             bool_or(r.is_end) as has_end
      from read r
      group by r.priority
    )
    select array(select case when p.priority < (select f.priority from found f where f.has_end) then p_floors[p.priority + 1]
                             else (select f.pos from found f where f.priority = p.priority) end
                 from generate_series(0, 9) p (priority)
                 order by p.priority)
    into firsts;
    return;
  end if;
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

-- Which of these claimers of domains have something to claim? One statement for all, so that claims that wait cost no transaction each.
-- p_types: null, or the claimer's types joined by line feeds. p_floors: ten watermarks for each claimer. ready: positions in the arrays. The
-- other three are as in pawl.decided_position; of a claimer that is not in `ready`, nothing is there behind its watermarks.
-- A claimer of some types before which many commands of others are queued counts as ready: its claims read on from there, in parts, while a poll for
-- all has to end soon. Nothing is read for a watermark that has reached `allocated`. A watermark beyond it is from before a restore or failover.
-- A claimer of a domain with a pause or a limit is in `ready`, or, by its position with a minus, known to have nothing to claim now; its queue was not read.
create or replace function pawl.claimers_ready (
  p_domains text[], p_types text[], p_floors bigint[],
  out allocated bigint, out running bigint, out oldest bigint, out ready integer[])
  language plpgsql volatile security definer set search_path = pawl, pg_temp
  set plan = keyed_cached
as $$
declare
  v_count integer := cardinality(p_domains);
  v_read integer := least(10000, greatest(100, 500000 / greatest(v_count, 1))); -- for each claimer
begin
  perform pawl.array_check('domains', p_domains, v_count, 'QU001'), pawl.array_check('types', p_types, v_count, 'QU001'),
          pawl.array_check('floors', p_floors, 10 * v_count, 'QU001');
  allocated := pawl.allocated(); -- in this order, as in pawl.decided_position
  running := pawl.allocation_bound();
  oldest := pawl.allocation_oldest('pawl.command_allocation', running);
  ready := array(
    select case when g.is_ready is null or g.is_ready then w.ord else - w.ord end::integer
    from unnest(p_domains, p_types) with ordinality w (domain, types, ord)
    cross join lateral (
      select d.id, string_to_array(w.types, E'\n') as types
      from pawl.domain_name d where d.name = w.domain order by d.id limit 1) d
    left join lateral (
      select coalesce(pawl.gate_ready(d.id, d.types, (select array_agg(case when f > claimers_ready.allocated then 0 else f end order by o)
                                                     from unnest(p_floors[10 * w.ord - 9:10 * w.ord]) with ordinality u (f, o))), false) as is_ready
      from pawl.gate g where g.domain_id = d.id) g on true
    where g.is_ready is not null or exists (
      select
      from (
        select r.id, row_number() over () as number
        from generate_series(0, 9) p (priority)
        cross join lateral (select p_floors[10 * (w.ord - 1) + p.priority + 1] as floor) f
        cross join lateral (
          select r.id
          from pawl.ready r
          where r.domain_id = d.id and r.priority = p.priority
            and r.pos > case when f.floor > claimers_ready.allocated then 0 else f.floor end
          order by r.pos
          limit v_read) r
        where f.floor <> claimers_ready.allocated
        limit v_read) r
      where d.types is null or r.number = v_read
         or exists (select from pawl.command c where c.id = r.id and c.type = any (d.types)))
    order by w.ord);
end
$$;
