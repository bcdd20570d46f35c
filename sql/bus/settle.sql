-- settle.sql - settle leased commands: complete, retry, fail (to the troubleshooting queue), reject.
--
-- Invariants: nothing is changed under a token that is not the lease's. An outcome is written once, by inserting it. The
-- same settle again, after a lost response, changes nothing and returns the same, once the command has ended by it. A row leaves
-- its table only in a statement that inserts it into another one, and pawl.moved() raises when the numbers differ.
-- Lock order, of every function here: lease, delayed, tsq and ready rows, each by id; then, in pawl.after_end, reply queues by name,
-- batch rows by id. pawl.after_end is called once, after the last row was locked.
-- Errors: QU001 arrays of different length or of more than 10000 elements, unknown outcome, a result too large. XX000 a move lost a row.

-- Raises when a statement deleted more or fewer rows than it inserted elsewhere.
create or replace function pawl.moved (p_deleted bigint, p_inserted bigint)
  returns void
  language plpgsql immutable
as $$
begin
  if p_deleted is distinct from p_inserted then
    raise exception '% commands left their table and % reached the next one', p_deleted, p_inserted using errcode = 'XX000';
  end if;
end
$$;

-- Raises unless the arrays name up to 10000 leases. Returns the tokens to try: of several for one command the greatest, because later
-- leases have greater tokens; the others become the least bigint, which no lease has. So a call cannot try all tokens of a lease.
-- Number 0 is no command: it stands for those that the caller did not find.
create or replace function pawl.lease_tokens (p_ids bigint[], p_tokens bigint[])
  returns bigint[]
  language plpgsql immutable
as $$
begin
  perform pawl.array_check('ids', p_ids, cardinality(p_ids), 'QU001'),
          pawl.array_check('tokens', p_tokens, cardinality(p_ids), 'QU001');
  if cardinality(p_ids) > 10000 then
    raise exception 'ids must have at most 10000 elements, got %', cardinality(p_ids) using errcode = 'QU001';
  end if;
  if array_position(p_ids, null) is not null or array_position(p_tokens, null) is not null then
    raise exception 'ids and tokens must not contain null' using errcode = 'QU001';
  end if;
  if cardinality(p_ids) = (select count(distinct i) from unnest(p_ids) i) then
    return p_tokens;
  end if;
  return array(
    select case when u.id = 0 or u.token = max(u.token) over (partition by u.id) then u.token else -9223372036854775808 end
    from unnest(p_ids, p_tokens) with ordinality u (id, token, ord)
    order by u.ord);
end
$$;

-- Completes commands without results, if all of these leases are there and no other transaction has one locked; else does nothing. extras: of
-- these commands, those with a reply, a batch, an order key or a large payload.
-- Deletes the leases without locking them first, which would write a WAL record for each. With p_nowait it passes over a row whose xmax is
-- set: another transaction has it locked, or had and rolled back. One that is locked between the two statements is waited for, 10 ms
-- at most. Callers that wait have locked the leases before.
-- Between the two statements a tid cannot become another lease's: the snapshot of the calling statement keeps vacuum from rows that were
-- deleted after it.
create or replace function pawl.settle_plain (
  p_nowait boolean, p_ids bigint[], p_tokens bigint[], p_now timestamptz, out is_done boolean, out extras bigint[])
  language plpgsql
as $$
declare
  c_rolled_back constant text := 'PWPRT';
  v_count integer := cardinality(p_ids);
  -- One index lookup per item, by lateral: a join could scan the leases first, with the dead entries of all that have ended.
  v_tids tid[] := array(
    select l.tid
    from (select unnest(p_ids) as id, unnest(p_tokens) as token) i
    cross join lateral (
      select l.ctid as tid from pawl.lease l
      where l.id = i.id and l.token = i.token and (l.xmax = 0 or p_nowait is not true) limit 1) l);
  v_lock_timeout text := current_setting('lock_timeout');
  v_deleted bigint;
  v_inserted bigint;
begin
  is_done := false;
  if cardinality(v_tids) < v_count then
    return;
  end if;
  perform set_config('lock_timeout', '10ms', true);
  begin
    with ended as (
      delete from pawl.lease l where l.ctid = any (v_tids)
      returning l.id, l.domain_id, l.attempt, l.token, l.started_at, l.worker, l.extras
    ), kept as (
      insert into pawl.outcome (id, domain_id, status, attempts, ended_at, token, started_at, worker)
      select e.id, e.domain_id, 'COMPLETED', e.attempt, p_now, e.token, e.started_at, e.worker from ended e
      returning 1
    )
    select count(*), (select count(*) from kept), array_agg(e.id order by e.id) filter (where e.extras)
    into v_deleted, v_inserted, extras
    from ended e;
    perform pawl.moved(v_deleted, v_inserted);
    if v_deleted < v_count then -- also when a call names a lease twice
      raise exception using errcode = c_rolled_back;
    end if;
    is_done := true;
  exception when sqlstate 'PWPRT' or lock_not_available then
    extras := null;
  end;
  perform set_config('lock_timeout', v_lock_timeout, true);
end
$$;

-- A row per item. settled: by this call. again: it had been, by this very settle under this token; a caller that has written
-- something in this transaction must roll back then as well.
-- Outcomes: complete, retry, fail (permanent: to the troubleshooting queue), reject (business refusal).
-- p_results: at most 16 MiB as text each. p_errors: cut after 8192 characters. p_delays_ms: for retry, instead of the schedule.
-- p_domains and p_command_ids say what the caller believes it settles, so that the trace of a command that does not
-- exist (id 0 when the caller never knew it) can be found by them.
-- Of several tokens for one command in a call the greatest is tried. With p_nowait the others are BUSY.
-- p_nowait: a lease that another transaction has locked (an application's pawl.cancel that is not committed yet) is not waited for, but for 10 ms
-- when it is locked at this very moment.
-- Nothing is done about it, and its status is BUSY: settle it again. For callers that share a transaction with others.
create or replace function pawl.settle_items (
  p_nowait boolean, p_ids bigint[], p_tokens bigint[], p_outcomes text[], p_results jsonb[], p_errors text[], p_delays_ms bigint[],
  p_domains text[], p_command_ids uuid[])
  returns table (ord integer, settled boolean, again boolean, status text)
  language plpgsql security definer set search_path = pawl, pg_temp
  set plan = keyed_cached
as $$
#variable_conflict use_column
declare
  v_now timestamptz := pawl.now();
  v_count integer := cardinality(p_ids);
  -- Those that end by this call, in arrays of one length.
  v_done bigint[];
  v_tids tid[];
  v_ids bigint[];
  v_tokens bigint[];
  v_domains integer[];
  v_attempts smallint[];
  v_statuses text[];
  v_results jsonb[];
  v_errors text[];
  v_started timestamptz[];
  v_workers text[];
  v_extras bigint[]; -- of these, those with a reply, a batch or an order key
  v_deleted bigint;
  v_inserted bigint;
  -- Those that go on, or were canceled while they ran.
  v_again_ords integer[];
  v_again_statuses text[];
  v_canceled bigint[];
  v_is_plain boolean; -- all are completed, without results
  v_is_done boolean;
begin
  p_tokens := pawl.lease_tokens(p_ids, p_tokens);
  perform pawl.array_check('outcomes', p_outcomes, v_count, 'QU001'),
          pawl.array_check('results', p_results, v_count, 'QU001', true),
          pawl.array_check('errors', p_errors, v_count, 'QU001', true),
          pawl.array_check('delays_ms', p_delays_ms, v_count, 'QU001', true),
          pawl.array_check('domains', p_domains, v_count, 'QU001', true),
          pawl.array_check('command_ids', p_command_ids, v_count, 'QU001', true);
  perform pawl.json_check('result', p_results, 'QU001') where p_results is not null;
  if exists (select from unnest(p_errors) e where octet_length(e) > 8192) then
    p_errors := array(select left(u.e, 8192) from unnest(p_errors) with ordinality u (e, n) order by u.n);
  end if;
  v_is_plain := p_results is null and p_errors is null and array_remove(p_outcomes, 'complete') = '{}';
  if not v_is_plain and exists (select from unnest(p_outcomes) o where o is null or o not in ('complete', 'retry', 'fail', 'reject')) then
    raise exception 'outcome must be complete, retry, fail or reject' using errcode = 'QU001';
  end if;
  if exists (select from unnest(p_delays_ms) d where d not between 0 and 315360000000) then -- null follows the schedule
    raise exception 'delay must be from 0 to 315360000000 ms' using errcode = 'QU001';
  end if;
  -- Always in the order of ids, so that two settles of the same commands cannot wait for each other.
  if p_nowait is not true then
    perform from pawl.lease l where l.id = any (p_ids) order by l.id for update;
  end if;

  if v_is_plain then -- nearly always: if all leases are there, they become outcomes as they are
    select d.is_done, d.extras into v_is_done, v_extras from pawl.settle_plain(p_nowait, p_ids, p_tokens, v_now) d;
    if v_is_done then
      if v_extras is not null then
        perform pawl.order_advance(v_extras);
        perform pawl.after_end(v_extras);
      end if;
      return query select generate_series(1, v_count), true, false, 'COMPLETED';
      return;
    end if;
  end if;

  -- One index lookup per item, by lateral: a join could scan the leases first, with the dead entries of all that have ended.
  select array_agg(h.ord), array_agg(h.tid), array_agg(h.id), array_agg(h.token), array_agg(h.domain_id), array_agg(h.attempt),
         array_agg(case h.outcome when 'complete' then 'COMPLETED' else 'FAILED' end), array_agg(h.result), array_agg(h.error),
         array_agg(h.started_at), array_agg(h.worker), array_agg(h.id) filter (where h.extras)
  into v_done, v_tids, v_ids, v_tokens, v_domains, v_attempts, v_statuses, v_results, v_errors, v_started, v_workers, v_extras
  from (
    select i.ord, i.id, i.token, i.outcome, i.result, i.error, l.tid, l.domain_id, l.attempt, l.extras, l.started_at, l.worker
    from (select distinct on (u.id, u.token) u.* -- a call may settle a lost lease and the one that followed it
          from unnest(p_ids, p_tokens, p_outcomes, p_results, p_errors)
            with ordinality u (id, token, outcome, result, error, ord)
          where u.outcome in ('complete', 'reject')
          order by u.id, u.token, u.ord) i
    cross join lateral (
      select l.ctid as tid, l.domain_id, l.attempt, l.extras, l.started_at, l.worker
      from pawl.lease l where l.id = i.id and l.token = i.token
      for update skip locked) l -- those that the caller waits for are locked already
  ) h;
  if v_tids is not null then
    with ended as (
      delete from pawl.lease l where l.ctid = any (v_tids) returning 1
    ), kept as (
      insert into pawl.outcome (id, domain_id, status, attempts, ended_at, token, result, error, started_at, worker)
      select e.id, e.domain_id, e.status, e.attempt, v_now, e.token, e.result, e.error, e.started_at, e.worker
      from unnest(v_ids, v_domains, v_statuses, v_attempts, v_tokens, v_results, v_errors, v_started, v_workers)
        e (id, domain_id, status, attempt, token, result, error, started_at, worker)
      returning 1
    )
    select (select count(*) from ended), (select count(*) from kept) into v_deleted, v_inserted;
    perform pawl.moved(v_deleted, v_inserted);
  end if;
  if v_extras is not null then
    perform pawl.order_advance(v_extras);
  end if;
  if cardinality(v_done) = v_count then
    if v_extras is not null then
      perform pawl.after_end(v_extras);
    end if;
    return query
      select u.ord::integer, true, false, case u.outcome when 'complete' then 'COMPLETED' else 'FAILED' end
      from unnest(p_outcomes) with ordinality u (outcome, ord)
      order by u.ord;
    return;
  end if;
  select array_agg(a.ord), array_agg(a.status), array_agg(p_ids[a.ord]) filter (where a.status = 'CANCELED')
  into v_again_ords, v_again_statuses, v_canceled
  from pawl.settle_again(p_ids, p_tokens, p_outcomes, p_errors, p_delays_ms, v_now) a;
  if v_extras is not null or v_canceled is not null then
    perform pawl.after_end(v_extras || v_canceled);
  end if;
  -- A command that never existed, or that retention has deleted: an operator can find what was reported about it.
  insert into pawl.event (id, at, domain_id, attempt, event, command_id, details)
  select u.id, v_now, coalesce(d.id, 0), 0, case u.outcome when 'complete' then 'COMPLETED' else 'FAILED' end, u.command_id,
         jsonb_strip_nulls(jsonb_build_object('orphan', true, 'domain', u.domain))
  from unnest(p_ids, p_outcomes, p_domains, p_command_ids) u (id, outcome, domain, command_id)
  left join lateral (select n.id from pawl.domain_name n where n.name = u.domain order by n.id limit 1) d on true
  where not exists (select from pawl.command c where c.id = u.id);
  perform pawl.replay_barrier();
  -- By grouping, because row by row a join of two lists takes the square of their length.
  return query
    select v.ord::integer, bool_or(v.settled), bool_or(v.again) and not bool_or(v.settled), coalesce(max(v.status), pawl.command_status(max(v.id)))
    from (
      select u.ord, u.id, false, false, null from unnest(p_ids) with ordinality u (id, ord)
      union all
      select d.ord, null, true, false, d.status from unnest(v_done, v_statuses) d (ord, status)
      union all
      select a.ord, null, true, false, a.status from unnest(v_again_ords, v_again_statuses) a (ord, status)
      union all
      select u.ord, null, false, true, o.status
      from unnest(p_ids, p_tokens, p_outcomes) with ordinality u (id, token, outcome, ord)
      join pawl.outcome o on o.id = u.id and o.token = u.token
        and o.status = case u.outcome when 'complete' then 'COMPLETED' when 'reject' then 'FAILED' end
      union all
      select u.ord, null, false, false, 'BUSY'
      from unnest(p_ids, p_tokens) with ordinality u (id, token, ord)
      cross join lateral (select from pawl.lease l where l.id = u.id and l.token = u.token limit 1) l
      where p_nowait -- what was settled has no lease any more
      union all
      select u.ord, null, false, false, 'BUSY' -- another item of this call has a greater token, perhaps of another client
      from unnest(p_tokens) with ordinality u (token, ord)
      where p_nowait and u.token = -9223372036854775808
    ) v (ord, id, settled, again, status)
    group by v.ord
    order by v.ord;
end
$$;

-- The same, waiting for leases that are locked.
create or replace function pawl.settle_named (
  p_ids bigint[], p_tokens bigint[], p_outcomes text[], p_results jsonb[], p_errors text[], p_delays_ms bigint[],
  p_domains text[], p_command_ids uuid[])
  returns table (ord integer, settled boolean, again boolean, status text)
  language sql security definer set search_path = pawl, pg_temp
as $$
  select s.ord, s.settled, s.again, s.status
  from pawl.settle_items(false, p_ids, p_tokens, p_outcomes, p_results, p_errors, p_delays_ms, p_domains, p_command_ids) s
$$;

-- The same for callers that know commands by their numbers only.
create or replace function pawl.settle (
  p_ids bigint[], p_tokens bigint[], p_outcomes text[], p_results jsonb[] default null, p_errors text[] default null,
  p_delays_ms bigint[] default null)
  returns table (ord integer, settled boolean, again boolean, status text)
  language sql security definer set search_path = pawl, pg_temp
as $$
  select s.ord, s.settled, s.again, s.status
  from pawl.settle_items(false, p_ids, p_tokens, p_outcomes, p_results, p_errors, p_delays_ms, null, null) s
$$;

-- The part of settle for what did not end: retries and failures. A row per item that it settled; the caller passes those that are
-- CANCELED to pawl.after_end. Leases that another transaction has locked are skipped; a caller that waits has locked its own before.
create or replace function pawl.settle_again (
  p_ids bigint[], p_tokens bigint[], p_outcomes text[], p_errors text[], p_delays_ms bigint[], p_now timestamptz)
  returns table (ord integer, status text)
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
#variable_conflict use_column
declare
  v_item record;
begin
  -- One by one: failures are rare, and each has its own schedule.
  for v_item in
    select u.ord::integer, u.outcome, u.error, u.delay_ms, l.*, c.type
    from unnest(p_ids, p_tokens, p_outcomes, p_errors, p_delays_ms)
      with ordinality u (id, token, outcome, error, delay_ms, ord)
    cross join lateral (select l.* from pawl.lease l where l.id = u.id and l.token = u.token limit 1 for update skip locked) l
    join pawl.command c on c.id = l.id
    where u.outcome in ('retry', 'fail')
    order by u.ord
  loop
    -- The same command twice in one call: the first item has settled it.
    continue when not exists (select from pawl.lease l where l.id = v_item.id and l.token = v_item.token);
    ord := v_item.ord;
    if v_item.cancel then
      perform pawl.finish_without_replies(array[v_item.id], 'CANCELED', 'CANCELED', null, v_item.error, null);
      status := 'CANCELED';
    elsif v_item.outcome = 'fail' or v_item.attempt >= v_item.max_attempts then
      perform pawl.give_up(array[v_item.id], v_item.error);
      status := 'IN_TSQ';
    else
      perform pawl.retry_later(v_item.id, v_item.error,
        coalesce(v_item.delay_ms, pawl.retry_delay_ms(v_item.domain_id, v_item.type, v_item.attempt)), p_now);
      status := 'PENDING';
    end if;
    return next;
  end loop;
end
$$;

-- Never NULL: 10, 60, 300 s unless the domain or the type has its own schedule; the last delay applies to all further attempts. Up to a
-- fifth is subtracted at random, so that commands that failed together are not retried together.
create or replace function pawl.retry_delay_ms (p_domain_id integer, p_type text, p_attempt integer)
  returns bigint
  language sql volatile
as $$
  select (coalesce(d.delays[greatest(least(p_attempt, cardinality(d.delays)), 1)], 60000) * (1 - random() / 5))::bigint
  from (
    select coalesce(
      (select r.delays_ms from pawl.retry_policy r where r.domain_id = p_domain_id and r.type = p_type),
      (select r.delays_ms from pawl.retry_policy r where r.domain_id = p_domain_id and r.type = '*'),
      '{10000,60000,300000}') as delays
  ) d
$$;

-- Without a delay it is queued immediately.
create or replace function pawl.retry_later (p_id bigint, p_error text, p_delay_ms bigint, p_now timestamptz)
  returns void
  language plpgsql
as $$
declare
  v_wait boolean := coalesce(p_delay_ms, 0) > 0; -- one value decides, so that a row goes to exactly one of two tables
  v_domains integer[]; -- in which it is queued
  v_deleted bigint;
  v_inserted bigint;
begin
  perform pawl.allocation_lock(2);
  with taken as (
    delete from pawl.lease l where l.id = p_id returning l.*
  ), put as (
    insert into pawl.delayed (id, due, domain_id, priority, attempt, max_attempts, extras)
    select t.id, p_now + p_delay_ms * interval '1 ms', t.domain_id, t.priority, t.attempt, t.max_attempts, t.extras
    from taken t
    where v_wait
    returning 1
  ), queued as (
    insert into pawl.ready (domain_id, priority, pos, id, attempt, max_attempts, extras)
    select t.domain_id, t.priority, nextval('pawl.command_seq'), t.id, t.attempt, t.max_attempts, t.extras
    from taken t
    where not v_wait
    returning domain_id
  ), recorded as (
    insert into pawl.event (id, at, domain_id, attempt, event, actor, details)
    select t.id, e.at, t.domain_id, t.attempt, e.event, e.actor, e.details
    from taken t
    cross join lateral (
      values (t.started_at, 'RECEIVED', t.worker, null),
             (p_now, 'RETRY_SCHEDULED', null, jsonb_build_object('error', p_error, 'delay_ms', coalesce(p_delay_ms, 0)))
    ) e (at, event, actor, details)
  )
  select (select count(*) from taken), (select count(*) from put) + (select count(*) from queued), array(select q.domain_id from queued q)
  into v_deleted, v_inserted, v_domains;
  perform pawl.moved(v_deleted, v_inserted);
  if not v_wait then
    perform pawl.wake_later(v_domains);
  end if;
end
$$;

-- To the troubleshooting queue.
create or replace function pawl.give_up (p_ids bigint[], p_error text)
  returns void
  language plpgsql
as $$
declare
  v_deleted bigint;
  v_inserted bigint;
begin
  with taken as (
    delete from pawl.lease l where l.id = any (p_ids) returning l.*
  ), put as (
    insert into pawl.tsq (id, since, domain_id, attempt, error)
    select t.id, pawl.now(), t.domain_id, t.attempt, p_error
    from taken t
    returning 1
  ), recorded as (
    insert into pawl.event (id, at, domain_id, attempt, event, actor, details)
    select t.id, e.at, t.domain_id, t.attempt, e.event, e.actor, e.details
    from taken t
    cross join lateral (values (t.started_at, 'RECEIVED', t.worker, null),
                               (pawl.now(), 'MOVED_TO_TSQ', null, jsonb_build_object('error', p_error))) e (at, event, actor, details)
  )
  select (select count(*) from taken), (select count(*) from put) into v_deleted, v_inserted;
  perform pawl.moved(v_deleted, v_inserted);
  perform pawl.order_release(p_ids);
end
$$;

-- The end of commands wherever they are: leased, queued, delayed or in the troubleshooting queue. Those that ended
-- before are left alone. p_error: the reason in the audit, and the command's error unless it is completed. Returns the ids that ended now; the caller passes them to pawl.after_end once it holds all its row locks.
create or replace function pawl.finish_without_replies (
  p_ids bigint[], p_status text, p_event text, p_result jsonb, p_error text, p_actor text)
  returns bigint[]
  language plpgsql security definer set search_path = pawl, pg_temp
  set plan = keyed_cached
as $$
declare
  v_now timestamptz;
  v_tids tid[];
  v_parked tid[];
  v_done bigint[];
  v_inserted bigint;
begin
  -- Rows of one table by id, so that two that end the same commands cannot wait for each other.
  perform from pawl.lease l where l.id = any (p_ids) order by l.id for update;
  perform from pawl.delayed d where d.id = any (p_ids) order by d.id for update;
  perform from pawl.tsq t where t.id = any (p_ids) order by t.id for update;
  v_parked := array(
    select p.tid
    from (select c.domain_id, c.order_key, c.id from pawl.command c where c.id = any (p_ids) and c.order_key is not null order by c.id) c
    cross join lateral (
      select p.ctid as tid from pawl.parked p
      where p.domain_id = c.domain_id and p.order_key = c.order_key and p.id = c.id for update) p);
  v_now := pawl.now(); -- under the locks: after the claim that it may have waited for
  -- Row by row, as in settle; and rows of ready are never updated, so they are where they are found.
  v_tids := array(
    select f.tid
    from (select c.domain_id, c.priority, c.id as pos from pawl.command c where c.id = any (p_ids)
          union all
          select r.domain_id, r.priority, r.pos from pawl.ready r where r.id = any (p_ids) and r.pos <> r.id
          order by pos) p
    cross join lateral (
      select r.ctid as tid from pawl.ready r
      where r.domain_id = p.domain_id and r.priority = p.priority and r.pos = p.pos
      for update) f);
  with leased as (
    delete from pawl.lease l where l.id = any (p_ids) returning l.id, l.domain_id, l.attempt, l.started_at, l.worker
  ), waiting as (
    delete from pawl.delayed d where d.id = any (p_ids) returning d.id, d.domain_id, d.attempt, null::timestamptz, null
  ), in_tsq as (
    delete from pawl.tsq t where t.id = any (p_ids) returning t.id, t.domain_id, t.attempt, null::timestamptz, null
  ), queued as (
    delete from pawl.ready r where r.ctid = any (v_tids) returning r.id, r.domain_id, r.attempt, null::timestamptz, null
  ), parked as (
    delete from pawl.parked p where p.ctid = any (v_parked) returning p.id, p.domain_id, 0::smallint, null::timestamptz, null
  ), ended as (
    select * from leased union all select * from waiting union all select * from in_tsq union all select * from queued
    union all select * from parked
  ), kept as (
    insert into pawl.outcome (id, domain_id, status, attempts, ended_at, result, error)
    select e.id, e.domain_id, p_status, e.attempt, v_now, p_result, case when p_status <> 'COMPLETED' then p_error end
    from ended e
    returning 1
  ), recorded as (
    insert into pawl.event (id, at, domain_id, attempt, event, actor, details)
    select e.id, v.at, e.domain_id, e.attempt, v.event, v.actor, v.details
    from ended e
    cross join lateral (
      values (e.started_at, 'RECEIVED', e.worker, null),
             (v_now, p_event, p_actor, case when p_error is not null then jsonb_build_object('reason', p_error) end)
    ) v (at, event, actor, details)
    where v.at is not null
  )
  select (select array_agg(e.id) from ended e), (select count(*) from kept) into v_done, v_inserted;
  perform pawl.moved(coalesce(cardinality(v_done), 0), v_inserted);
  if v_done is not null then
    perform pawl.order_advance(v_done);
    perform pawl.process_orphan_note(v_done, false);
  end if;
  return coalesce(v_done, '{}');
end
$$;

-- The same, with replies and the progress of batches.
create or replace function pawl.finish (
  p_ids bigint[], p_status text, p_event text, p_result jsonb, p_error text, p_actor text)
  returns bigint[]
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
declare
  v_done bigint[] := pawl.finish_without_replies(p_ids, p_status, p_event, p_result, p_error, p_actor);
begin
  if cardinality(v_done) > 0 then
    perform pawl.after_end(v_done);
  end if;
  return v_done;
end
$$;
