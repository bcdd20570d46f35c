-- settle.sql - settle leased commands: complete, retry, fail (to the troubleshooting queue), reject.
--
-- Invariants: nothing is changed under a token that is not the lease's. An outcome is written once, by inserting it. The
-- same settle again, after a lost response, changes nothing and returns the same, once the command has ended by it. A row leaves
-- its table only in a statement that inserts it into another one, and pawl.moved() raises when the numbers differ.
-- Lock order, of every function here: lease, delayed, tsq and ready rows, each by id; then, in pawl.after_end, reply queues by name,
-- batch rows by id (pawl.batch_hold). pawl.after_end is called once, after the last row was locked.
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

-- Raises unless the arguments of a settle are in range; pawl.lease_check has checked ids and tokens.
create or replace function pawl.settle_check (
  p_count integer, p_outcomes text[], p_results jsonb[], p_errors text[], p_delays_ms bigint[], p_domains text[], p_command_ids uuid[])
  returns void
  language plpgsql
as $$
begin
  perform pawl.array_check('outcomes', p_outcomes, p_count, 'QU001'),
          pawl.array_check('results', p_results, p_count, 'QU001', true),
          pawl.array_check('errors', p_errors, p_count, 'QU001', true),
          pawl.array_check('delays_ms', p_delays_ms, p_count, 'QU001', true),
          pawl.array_check('domains', p_domains, p_count, 'QU001', true),
          pawl.array_check('command_ids', p_command_ids, p_count, 'QU001', true);
  if p_results is not null then
    perform pawl.json_check('result', p_results, 'QU001');
  end if;
  if not p_outcomes <@ '{complete,retry,fail,reject,snooze}'::text[] then -- null is none of them
    raise exception 'outcome must be complete, retry, fail, reject or snooze' using errcode = 'QU001';
  end if;
  if p_delays_ms is not null then
    perform pawl.delays_check(p_delays_ms, true);
    if 'snooze' = any (p_outcomes) then
      perform pawl.snooze_check(p_outcomes, p_delays_ms);
    end if;
  end if;
end
$$;

-- The part of settle for what ends: complete and reject. ords, statuses: of the items that it settled; extras: of these commands, those
-- with a reply, a batch or an order key. Leases that another transaction has locked are skipped; a caller that waits has locked its own
-- before.
create or replace function pawl.settle_end (
  p_ids bigint[], p_tokens bigint[], p_outcomes text[], p_results jsonb[], p_errors text[], p_now timestamptz,
  out ords integer[], out statuses text[], out extras bigint[])
  language plpgsql
as $$
declare
  v_tids tid[];
  -- Of the same length.
  v_ids bigint[];
  v_tokens bigint[];
  v_domains integer[];
  v_attempts smallint[];
  v_results jsonb[];
  v_errors text[];
  v_started timestamptz[];
  v_workers text[];
  v_deleted bigint;
  v_inserted bigint;
begin
  -- One index lookup per item, by lateral: a join could scan the leases first, with the dead entries of all that have ended.
  select array_agg(h.ord::integer), array_agg(h.tid), array_agg(h.id), array_agg(h.token), array_agg(h.domain_id), array_agg(h.attempt),
         array_agg(case h.outcome when 'complete' then 'COMPLETED' else 'FAILED' end), array_agg(h.result), array_agg(h.error),
         array_agg(h.started_at), array_agg(h.worker), array_agg(h.id) filter (where h.extras)
  into ords, v_tids, v_ids, v_tokens, v_domains, v_attempts, statuses, v_results, v_errors, v_started, v_workers, extras
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
      for update skip locked) l
  ) h;
  if v_tids is null then
    return;
  end if;
  with ended as (
    delete from pawl.lease l where l.ctid = any (v_tids) returning 1
  ), kept as (
    insert into pawl.outcome (id, domain_id, status, attempts, ended_at, token, result, error, started_at, worker)
    select e.id, e.domain_id, e.status, e.attempt, p_now, e.token, e.result, e.error, e.started_at, e.worker
    from unnest(v_ids, v_domains, statuses, v_attempts, v_tokens, v_results, v_errors, v_started, v_workers)
      e (id, domain_id, status, attempt, token, result, error, started_at, worker)
    returning 1
  )
  select (select count(*) from ended), (select count(*) from kept) into v_deleted, v_inserted;
  perform pawl.moved(v_deleted, v_inserted);
end
$$;

-- The part of settle for what did not end: retries, failures and snoozes. A row per item that it settled; the caller passes those that are
-- CANCELED to pawl.after_end. Leases that another transaction has locked are skipped; a caller that waits has locked its own before.
create or replace function pawl.settle_again (
  p_ids bigint[], p_tokens bigint[], p_outcomes text[], p_errors text[], p_delays_ms bigint[], p_now timestamptz)
  returns table (ord integer, status text)
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
#variable_conflict use_column
declare
  c_snooze_ms constant bigint := 10000; -- unless the handler says otherwise
  v_item record;
begin
  -- One by one: failures are rare, and each has its own schedule.
  for v_item in
    select u.ord::integer, u.outcome, u.error, u.delay_ms, l.*, c.type
    from unnest(p_ids, p_tokens, p_outcomes, p_errors, p_delays_ms)
      with ordinality u (id, token, outcome, error, delay_ms, ord)
    cross join lateral (select l.* from pawl.lease l where l.id = u.id and l.token = u.token limit 1 for update skip locked) l
    join pawl.command c on c.id = l.id
    where u.outcome in ('retry', 'fail', 'snooze')
    order by u.ord
  loop
    -- The same command twice in one call: the first item has settled it.
    continue when not exists (select from pawl.lease l where l.id = v_item.id and l.token = v_item.token);
    ord := v_item.ord;
    if v_item.cancel then
      perform pawl.finish_without_replies(array[v_item.id], 'CANCELED', 'CANCELED', null, v_item.error, null);
      status := 'CANCELED';
    elsif v_item.outcome = 'snooze' and pawl.snooze_later(v_item.id, v_item.error, coalesce(v_item.delay_ms, c_snooze_ms), p_now) then
      status := 'PENDING';
    elsif v_item.outcome = 'fail' or v_item.attempt >= v_item.max_attempts then
      perform pawl.give_up(array[v_item.id], case when v_item.outcome = 'snooze' then coalesce(v_item.error || ': ', '') || 'snoozed too often or for too long'
                                                  else v_item.error end);
      status := 'IN_TSQ';
    else
      perform pawl.retry_later(v_item.id, v_item.error,
        coalesce(v_item.delay_ms, case when v_item.outcome = 'snooze' then c_snooze_ms end, pawl.retry_delay_ms(v_item.domain_id, v_item.type, v_item.attempt)), p_now);
      status := 'PENDING';
    end if;
    return next;
  end loop;
end
$$;

-- Items about commands that never existed, or that retention has deleted: an operator can find what was reported about them. Not about those that
-- exist under another number, and by number 0 what names one that no command was given so far: a later command would have the event. Nothing
-- is kept of a session that may not settle as a worker does: code of applications runs in it, and would write into the audit. As in
-- wallet.treasury_check, the role of SET ROLE answers for a session, else its login.
create or replace function pawl.settle_orphans (
  p_ids bigint[], p_outcomes text[], p_domains text[], p_command_ids uuid[], p_now timestamptz)
  returns void
  language plpgsql
as $$
declare
  v_role text := current_setting('role');
begin
  if v_role = 'none' then
    v_role := session_user;
  end if;
  if not has_function_privilege(v_role, 'pawl.settle(bigint[],bigint[],text[],jsonb[],text[],bigint[])', 'execute') then
    return;
  end if;
  insert into pawl.event (id, at, domain_id, attempt, event, command_id, details)
  select case when u.id between 0 and s.last_value then u.id else 0 end, p_now, coalesce(d.id, 0), 0, case u.outcome when 'complete' then 'COMPLETED' else 'FAILED' end, u.command_id,
         jsonb_strip_nulls(jsonb_build_object('orphan', true, 'domain', u.domain,
           'number', case when u.id not between 0 and s.last_value then u.id end))
  from unnest(p_ids, p_outcomes, p_domains, p_command_ids) u (id, outcome, domain, command_id)
  left join lateral (select n.id from pawl.domain_name n where n.name = u.domain order by n.id limit 1) d on true
  cross join pawl.command_seq s
  where not exists (select from pawl.command c where c.id = u.id)
    and not exists (select from pawl.command c where c.command_id = u.command_id and c.domain_id = d.id);
end
$$;

-- What settle_items returns when some of the items ended no command. p_ords, p_statuses: of those that it settled.
-- By grouping, because row by row a join of two lists takes the square of their length.
create or replace function pawl.settle_verdicts (
  p_nowait boolean, p_ids bigint[], p_tokens bigint[], p_outcomes text[], p_ords integer[], p_statuses text[])
  returns table (ord integer, settled boolean, again boolean, status text)
  language sql stable
as $$
  select v.ord::integer, bool_or(v.settled), bool_or(v.again) and not bool_or(v.settled), coalesce(max(v.status), pawl.command_status(max(v.id)))
  from (
    select u.ord, u.id, false, false, null from unnest(p_ids) with ordinality u (id, ord)
    union all
    select d.ord, null, true, false, d.status from unnest(p_ords, p_statuses) d (ord, status)
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
  ) v (ord, id, settled, again, status)
  group by v.ord
  order by v.ord
$$;

-- A row per item. settled: by this call. again: it had been, by this very settle under this token; a caller that has written
-- something in this transaction must roll back then as well.
-- Outcomes: complete, retry, fail (permanent: to the troubleshooting queue), reject (business refusal), snooze (later, without counting the attempt).
-- p_results: at most 16 MiB as text each. p_errors: cut after 8192 characters. p_delays_ms: for retry, instead of the schedule; for snooze, 10 s unless given.
-- p_domains and p_command_ids say what the caller believes it settles, so that the trace of a command that does not
-- exist (id 0 when the caller never knew it) can be found by them.
-- p_nowait: a lease that another transaction has locked (an application's pawl.cancel that is not committed yet) is not waited for, but for 10 ms
-- when it is locked at this very moment.
-- Nothing is done about it, and its status is BUSY: settle it again. For callers that share a transaction with others.
-- p_offers: free handlers of the caller for what this call resumes (resume_start.sql); started: of the first row, what has a lease with their tokens.
create or replace function pawl.settle_items (
  p_nowait boolean, p_ids bigint[], p_tokens bigint[], p_outcomes text[], p_results jsonb[], p_errors text[], p_delays_ms bigint[],
  p_domains text[], p_command_ids uuid[], p_offers jsonb default null)
  returns table (ord integer, settled boolean, again boolean, status text, started jsonb)
  language plpgsql security definer set search_path = pawl, pg_temp
  set plan = keyed_cached
as $$
#variable_conflict use_column
declare
  v_now timestamptz := pawl.now();
  v_count integer := cardinality(p_ids);
  v_is_done boolean := false;
  v_extras bigint[]; -- of those that end, those with a reply, a batch or an order key
  v_ords integer[];  -- of the items that this call settles
  v_statuses text[];
  v_canceled bigint[];
  v_started jsonb;
begin
  perform pawl.lease_check(p_ids, p_tokens);
  perform pawl.settle_check(v_count, p_outcomes, p_results, p_errors, p_delays_ms, p_domains, p_command_ids);
  -- Always in the order of ids, so that two settles of the same commands cannot wait for each other. Only under their tokens: who has none of a
  -- lease does not lock it.
  if p_nowait is not true then
    perform from (select u.* from unnest(p_ids, p_tokens) u (id, token) order by u.id) i
    cross join lateral (select from pawl.lease l where l.id = i.id and l.token = i.token for update) l;
  end if;

  if p_results is null and p_errors is null and array_remove(p_outcomes, 'complete') = '{}' then -- nearly always
    select d.is_done, d.extras into v_is_done, v_extras from pawl.settle_plain(p_nowait, p_ids, p_tokens, v_now) d;
  end if;
  if not v_is_done then
    if p_errors is not null then
      p_errors := array(select left(u.e, 8192) from unnest(p_errors) with ordinality u (e, n) order by u.n);
    end if;
    select e.ords, e.statuses, e.extras into v_ords, v_statuses, v_extras
    from pawl.settle_end(p_ids, p_tokens, p_outcomes, p_results, p_errors, v_now) e;
    v_is_done := coalesce(cardinality(v_ords) = v_count, false);
  end if;
  if v_extras is not null then
    perform pawl.order_advance(v_extras);
  end if;
  if not v_is_done then
    select v_ords || array_agg(a.ord), v_statuses || array_agg(a.status), array_agg(p_ids[a.ord]) filter (where a.status = 'CANCELED')
    into v_ords, v_statuses, v_canceled
    from pawl.settle_again(p_ids, p_tokens, p_outcomes, p_errors, p_delays_ms, v_now) a;
  end if;
  if v_extras is not null or v_canceled is not null then
    perform pawl.offers_set(p_offers) where p_offers is not null;
    perform pawl.after_end(v_extras || v_canceled);
  end if;
  if p_offers is not null and (v_extras is not null or not v_is_done) then
    v_started := pawl.attached_resumed(p_ids, p_offers);
  end if;

  if v_is_done then
    return query
      select u.ord, true, false, case u.outcome when 'complete' then 'COMPLETED' else 'FAILED' end, case when u.ord = 1 then v_started end
      from (select generate_series(1, v_count) as ord, unnest(p_outcomes) as outcome) u;
  else
    perform pawl.settle_orphans(p_ids, p_outcomes, p_domains, p_command_ids, v_now);
    perform pawl.replay_barrier();
    return query
      select v.ord, v.settled, v.again, v.status, case when v.ord = 1 then v_started end
      from pawl.settle_verdicts(p_nowait, p_ids, p_tokens, p_outcomes, v_ords, v_statuses) v;
  end if;
end
$$;

-- The same for callers that know commands by their numbers only, waiting for leases that are locked.
create or replace function pawl.settle (
  p_ids bigint[], p_tokens bigint[], p_outcomes text[], p_results jsonb[] default null, p_errors text[] default null,
  p_delays_ms bigint[] default null)
  returns table (ord integer, settled boolean, again boolean, status text)
  language sql security definer set search_path = pawl, pg_temp
as $$
  select s.ord, s.settled, s.again, s.status
  from pawl.settle_items(false, p_ids, p_tokens, p_outcomes, p_results, p_errors, p_delays_ms, null, null) s
$$;
