-- write.sql - what an activation writes: records of steps, patches of the state, its suspension or its end. Many processes in one call.
--
-- Invariants
--   1. Nothing is written under a token that is not the lease's, or after the process has ended.
--   2. A record is inserted once. Its patch is applied in the statement that inserts it, so the same write again (its answer was lost)
--      changes nothing.
--   3. A patch that was computed from the state names the version it read. If the state has changed since, also by an item before it in
--      the same call, nothing of the item is written, and the caller continues from the state returned.
--   4. A process is suspended only if none of its waits is complete: see respond.sql.
--   5. A process that was canceled without compensation does not begin to be compensated. It ends instead.
--   6. A process continues as new at most once per lease: see continue.sql.
--   7. A call suspends or ends a process once: items behind the first one of a lease that does are LOST, as in calls one after the other.
-- Lock order: lease rows by id, process rows by id, skipping locked ones; then what pawl.settle_items locks.
-- Errors: QP001 an argument is out of range.

-- The leases of activations, which are held until the commit by a key share lock, so their heartbeats do not wait; those that end with this write,
-- by a lock for update. An application may hold a lease for as long as its transaction (pawl.cancel): a step is recorded all the same, an end is BUSY,
-- and what is written for others does not wait for it. verdicts: WRITTEN, LOST, BUSY. was_tried: one of the activations is not the first of its
-- command. has_canceled: one of them is to be canceled.
create or replace function pawl.write_leases (
  p_ids bigint[], p_tokens bigint[], p_waits text[], p_ends text[], out verdicts text[], out was_tried boolean, out has_canceled boolean)
  language plpgsql
as $$
begin
  if p_waits is null and p_ends is null then -- most calls: a query that has less to start
    select array_agg(case when l.attempt is not null then 'WRITTEN' else 'LOST' end order by i.ord), coalesce(max(l.attempt) > 1, false),
           coalesce(bool_or(l.cancel), false)
    into verdicts, was_tried, has_canceled
    from (select u.* from unnest(p_ids, p_tokens) with ordinality u (id, token, ord) order by u.id) i
    left join lateral (
      select l.attempt, l.cancel from pawl.lease l where l.id = i.id and l.token = i.token for key share skip locked) l on true;
  else
    select array_agg(case when h.attempt is not null then 'WRITTEN' else 'LOST' end order by h.ord), coalesce(max(h.attempt) > 1, false),
           coalesce(bool_or(h.cancel), false)
    into verdicts, was_tried, has_canceled
    from (
      select i.ord, coalesce(e.attempt, k.attempt) as attempt, coalesce(e.cancel, k.cancel) as cancel
      from (select u.*, coalesce(u.wait, u.outcome) is not null as ends
            from unnest(p_ids, p_tokens, p_waits, p_ends) with ordinality u (id, token, wait, outcome, ord) order by u.id) i
      left join lateral (
        select l.attempt, l.cancel from pawl.lease l where i.ends and l.id = i.id and l.token = i.token for update skip locked) e on true
      left join lateral (
        select l.attempt, l.cancel from pawl.lease l where not i.ends and l.id = i.id and l.token = i.token for key share skip locked) k on true) h;
  end if;
  if 'LOST' = any (verdicts) then -- in a new snapshot: the transaction that holds it may just have ended it
    verdicts := array(
      select case when u.verdict = 'LOST' and exists (select from pawl.lease l where l.id = u.id and l.token = u.token)
                  then 'BUSY' else u.verdict end
      from unnest(p_ids, p_tokens, verdicts) with ordinality u (id, token, verdict, ord) order by u.ord);
  end if;
end
$$;

-- Items behind one that suspends or ends the process under the same lease are LOST, also if that one is refused: its caller has said that it writes no more.
create or replace function pawl.write_behind (p_ids bigint[], p_tokens bigint[], p_waits text[], p_ends text[], p_verdicts text[])
  returns text[]
  language plpgsql
as $$
begin
  return array(
    select case when bool_or(coalesce(u.wait, u.outcome) is not null) over (
             partition by u.id, u.token order by u.ord rows between unbounded preceding and 1 preceding) then 'LOST' else u.verdict end
    from unnest(p_ids, p_tokens, p_waits, p_ends, p_verdicts) with ordinality u (id, token, wait, outcome, verdict, ord)
    order by u.ord);
end
$$;

-- Lock the rows of the processes that an item changes: by a patch, a wait, a phase or a failure. An application may hold a process's row for as long as its
-- transaction (pawl.signal): what is written for others does not wait for it. Verdict BUSY for those that it holds. A process that completes is not
-- locked, for speed: it has ended before its compensation is asked for then.
create or replace function pawl.write_rows (p_ids bigint[], p_patches jsonb[], p_waits text[], p_phases text[], p_ends text[], p_verdicts text[])
  returns text[]
  language plpgsql
as $$
declare
  v_failed text[];
  v_locked bigint[];
  v_needed bigint;
begin
  if p_ends && array['fail', 'reject', 'continue'] then
    v_failed := array(
      select case when u.outcome in ('fail', 'reject', 'continue') then u.outcome end from unnest(p_ends) with ordinality u (outcome, ord) order by u.ord);
  end if;
  with needed as (
    select distinct u.id
    from unnest(p_ids, p_patches, p_waits, p_phases, v_failed, p_verdicts) u (id, patch, wait, phase, failed, verdict)
    where u.verdict = 'WRITTEN' and coalesce(u.patch::text, u.wait, u.phase, u.failed) is not null
  )
  select array(
    select p.id from (select n.id from needed n order by n.id) i
    cross join lateral (select p.id from pawl.process p where p.id = i.id for update skip locked) p), count(*)
  into v_locked, v_needed from needed;
  if cardinality(v_locked) = v_needed then
    return p_verdicts;
  end if;
  return array(
    select case when l.is_busy then 'BUSY' else u.verdict end
    from unnest(p_ids, p_patches, p_waits, p_phases, v_failed, p_verdicts) with ordinality u (id, patch, wait, phase, failed, verdict, ord)
    cross join lateral (
      select u.verdict = 'WRITTEN' and coalesce(u.patch::text, u.wait, u.phase, u.failed) is not null and u.id <> all (v_locked)
             and exists (select from pawl.process p where p.id = u.id) as is_busy) l
    order by u.ord);
end
$$;

-- End processes that were canceled while they ran; their items that would be written get p_verdict.
create or replace function pawl.write_cancel (p_ids bigint[], p_verdicts text[], p_canceled bigint[], p_verdict text)
  returns text[]
  language plpgsql
as $$
begin
  if cardinality(p_canceled) = 0 then
    return p_verdicts;
  end if;
  perform pawl.process_decide(p_canceled, 'cancel', 'operator');
  return array(
    select case when u.id = any (p_canceled) and u.verdict = 'WRITTEN' then p_verdict else u.verdict end
    from unnest(p_ids, p_verdicts) with ordinality u (id, verdict, ord) order by u.ord);
end
$$;

-- A process that was canceled does not enter a phase: it ends, and its items are LOST. Under the locks on the process rows, which
-- pawl.command_cancel holds as well: it does not cancel what is being compensated.
create or replace function pawl.write_phases_check (p_ids bigint[], p_phases text[], p_verdicts text[])
  returns text[]
  language plpgsql
as $$
declare
  v_canceled bigint[] := array(
    select distinct u.id from unnest(p_ids, p_phases, p_verdicts) u (id, phase, verdict)
    where u.verdict = 'WRITTEN' and u.phase is not null and exists (select from pawl.lease l where l.id = u.id and l.cancel)
    order by 1);
begin
  return pawl.write_cancel(p_ids, p_verdicts, v_canceled, 'LOST');
end
$$;

-- Verdicts of patches that cannot be applied: STALE, TOO_LARGE. One whose record is known is not applied again.
create or replace function pawl.write_patches_check (
  p_ids bigint[], p_records jsonb[], p_patches jsonb[], p_versions bigint[], p_verdicts text[])
  returns text[]
  language plpgsql
as $$
declare
  c_state_max constant integer := 1024 * 1024;
  v_repeats boolean := cardinality(p_ids) > (select count(distinct i) from unnest(p_ids) i); -- several items of one process
begin
  return array(
    select case when c.is_known then c.verdict when c.is_stale then 'STALE' when c.bytes > c_state_max then 'TOO_LARGE' else c.verdict end
    from (
      select u.ord, u.verdict, s.is_known, nullif(u.version, 0) <> p.version or u.version > 0 and b.patched > 0 as is_stale,
             case when u.patch is not null then pawl.json_bytes(p.state || u.patch) + b.bytes end as bytes
      from unnest(p_ids, p_records, p_patches, p_versions, p_verdicts) with ordinality u (id, record, patch, version, verdict, ord)
      left join lateral (
        select p.version, p.state from pawl.process p where p.id = u.id and u.verdict = 'WRITTEN' and u.patch is not null limit 1) p on true
      left join lateral (
        select true as is_known
        from pawl.record_read(u.record) r
        cross join lateral ( -- see pawl.process_counted
          select from pawl.process_step s
          where s.id = u.id and s.step = r.step and s.item = r.item and s.undo = r.undo and s.kind = r.kind and s.aside = r.aside
            and s.attempt = r.attempt limit 1) s
        where u.patch is not null limit 1) s on true
      -- What items before it in this call do to the same process.
      left join lateral (
        select count(*) as patched, coalesce(sum(octet_length(o.patch::text)), 0) as bytes
        from unnest(p_ids, p_patches) with ordinality o (id, patch, ord)
        where v_repeats and o.id = u.id and o.ord < u.ord and o.patch is not null) b on true) c
    order by c.ord);
end
$$;

-- Insert records and apply their patches. Returns the items whose record was there before; null: none was.
create or replace function pawl.write_records (
  p_ids bigint[], p_records jsonb[], p_results jsonb[], p_errors text[], p_patches jsonb[], p_now timestamptz, p_was_tried boolean, p_verdicts text[])
  returns bigint[]
  language plpgsql
as $$
#variable_conflict use_column
declare
  v_items bigint;
  v_inserted bigint;
begin
  if p_patches is null then -- most calls: a query that has less to start
    insert into pawl.process_step (id, step, item, undo, kind, aside, attempt, verdict, retry_at, response, taken, call, call_kind, input_hash, result, error, started_at, ended_at)
    select u.id, r.step, r.item, r.undo, r.kind, r.aside, r.attempt, coalesce(r.verdict, case when u.error is null then 'done' else 'failed' end), r.retry_at, r.response,
           r.taken, r.call, r.call_kind, r.input_hash, u.result, u.error, coalesce(r.started_at, p_now), p_now
    from unnest(p_ids, p_records, p_results, p_errors, p_verdicts) with ordinality u (id, record, result, error, verdict, ord)
    cross join lateral pawl.record_read(u.record) r
    where u.verdict = 'WRITTEN' and u.record is not null
    order by u.ord -- of one record the first item counts
    on conflict (id, step, item, undo, kind, aside, attempt) do nothing;
    get diagnostics v_inserted = row_count;
    v_items := cardinality(p_ids);
  else
    with given as (
      select u.id, u.result, u.error, u.patch, u.ord, r.*,
             row_number() over (partition by u.id, r.step, r.item, r.undo, r.kind, r.aside, r.attempt order by u.ord) as nth
      from unnest(p_ids, p_records, p_results, p_errors, p_patches, p_verdicts) with ordinality u (id, record, result, error, patch, verdict, ord)
      cross join lateral pawl.record_read(u.record) r
      where u.verdict = 'WRITTEN' and u.record is not null
    ), item as (
      select * from given g where g.nth = 1 -- of one record the first item counts, with its patch
    ), recorded as (
      insert into pawl.process_step (id, step, item, undo, kind, aside, attempt, verdict, retry_at, response, taken, call, call_kind, input_hash, result, error, started_at, ended_at)
      select i.id, i.step, i.item, i.undo, i.kind, i.aside, i.attempt, coalesce(i.verdict, case when i.error is null then 'done' else 'failed' end), i.retry_at, i.response, i.taken,
             i.call, i.call_kind, i.input_hash, i.result, i.error, coalesce(i.started_at, p_now), p_now
      from item i
      on conflict (id, step, item, undo, kind, aside, attempt) do nothing
      returning id, step, item, undo, kind, aside, attempt
    ), patched as (
      update pawl.process p set state = p.state || i.patch, version = p.version + 1, step = l.step, item = l.item, undo = l.undo, waited_at = null
      from (
        select i.id, jsonb_object_agg(e.key, e.value order by i.ord) as patch, max(i.ord) as last
        from item i
        join recorded r on r.id = i.id and r.step = i.step and r.item = i.item and r.undo = i.undo and r.kind = i.kind and r.aside = i.aside and r.attempt = i.attempt
        cross join lateral jsonb_each(i.patch) e (key, value)
        where i.patch is not null
        group by i.id) i
      join item l on l.ord = i.last
      where p.id = i.id
    )
    select (select count(*) from given), (select count(*) from recorded) into v_items, v_inserted;
  end if;
  if p_was_tried then -- an activation that has a record makes progress, so workers that died of it before do not count any more
    update pawl.lease l set attempt = 1
    where l.id = any (array( -- without one that pawl.cancel has locked: it is not waited for
      select l.id from pawl.lease l
      where l.attempt > 1 and l.id = any (array(
        select u.id from unnest(p_ids, p_records, p_errors, p_verdicts) u (id, record, error, verdict)
        where u.verdict = 'WRITTEN' and u.record is not null and u.error is null))
      order by l.id for no key update skip locked));
  end if;
  if v_inserted = v_items then
    return null;
  end if;
  return array(
    select g.ord from (
      select u.id, u.ord, r.*, row_number() over (partition by u.id, r.step, r.item, r.undo, r.kind, r.aside, r.attempt order by u.ord) as nth
      from unnest(p_ids, p_records, p_verdicts) with ordinality u (id, record, verdict, ord)
      cross join lateral pawl.record_read(u.record) r
      where u.verdict = 'WRITTEN' and u.record is not null) g
    where g.nth > 1 or exists (
      select from pawl.process_step s
      where s.id = g.id and s.step = g.step and s.item = g.item and s.undo = g.undo and s.kind = g.kind and s.aside = g.aside and s.attempt = g.attempt
        and s.ended_at <> p_now));
end
$$;

-- Processes that were canceled end with the step that was recorded: verdict ENDED. A suspension, an end or a change of the phase in the same call decides
-- by itself.
create or replace function pawl.write_canceled (
  p_ids bigint[], p_records jsonb[], p_phases text[], p_waits text[], p_ends text[], p_known bigint[], p_verdicts text[])
  returns text[]
  language plpgsql
as $$
declare
  v_canceled bigint[] := array(
    select distinct u.id
    from unnest(p_ids, p_records, p_verdicts) with ordinality u (id, record, verdict, ord)
    cross join lateral (select from pawl.lease l where l.id = u.id and l.cancel limit 1) l
    where u.verdict = 'WRITTEN' and u.record is not null and u.ord <> all (coalesce(p_known, '{}'))
      and u.id <> all (array(
        select o.id from unnest(p_ids, p_waits, p_ends, p_phases) o (id, wait, outcome, phase)
        where coalesce(o.wait, o.outcome, o.phase) is not null))
    order by 1);
begin
  -- Another branch of one may be writing a record under the same lease, and wait for ours: then that one, or the next write, ends the process.
  v_canceled := array(
    select l.id from unnest(v_canceled) i (id)
    cross join lateral (select l.id from pawl.lease l where l.id = i.id for update skip locked) l);
  return pawl.write_cancel(p_ids, p_verdicts, v_canceled, 'ENDED');
end
$$;

-- Processes enter phases; of several of one process the last one is that which it has then. What they have sent and what is open is canceled when they begin
-- to be compensated. p_errors: why.
create or replace function pawl.write_phases (p_ids bigint[], p_phases text[], p_failed text[], p_errors text[], p_verdicts text[])
  returns void
  language plpgsql
as $$
begin
  update pawl.process p
  set phase = u.phase, reason = coalesce(p.reason, u.error), failed = coalesce(p.failed, u.failed),
      compensating_at = case when u.begins then coalesce(p.compensating_at, pawl.now()) else p.compensating_at end
  from (
    select u.id, (array_agg(u.phase order by u.ord desc))[1] as phase, (array_agg(u.error order by u.ord) filter (where u.error is not null))[1] as error,
           (array_agg(u.failed order by u.ord) filter (where u.failed is not null))[1] as failed, bool_or(u.phase = 'compensating') as begins
    from unnest(p_ids, p_phases, p_failed, p_errors, p_verdicts) with ordinality u (id, phase, failed, error, verdict, ord)
    where u.verdict = 'WRITTEN' and u.phase is not null
    group by u.id) u
  where p.id = u.id and p.phase <> 'compensated'; -- it is the last one
  perform pawl.process_orphan_note(array(
    select u.id from unnest(p_ids, p_phases, p_verdicts) u (id, phase, verdict)
    where u.verdict = 'WRITTEN' and u.phase = 'compensating'), true);
end
$$;

-- Suspend processes; verdict MET for those of which a wait is complete. One that was canceled ends instead.
create or replace function pawl.write_waits (p_ids bigint[], p_waits text[], p_at jsonb[], p_for jsonb[], p_due_us bigint[], p_verdicts text[])
  returns text[]
  language plpgsql
as $$
declare
  v_now timestamptz;
  v_verdicts text[];
  v_canceled bigint[];
  v_deleted bigint;
  v_inserted bigint;
begin
  -- Under the locks on the process rows, in a snapshot that sees every response stored before.
  v_verdicts := array(
    select case when m.is_met then 'MET' else u.verdict end
    from unnest(p_ids, p_waits, p_for, p_verdicts) with ordinality u (id, wait, waits_for, verdict, ord)
    left join lateral (
      select pawl.process_is_met(u.id, u.waits_for) as is_met where u.verdict = 'WRITTEN' and u.wait is not null) m on true
    order by u.ord);
  perform pawl.command_allocation_lock();
  v_now := pawl.now(); -- under the lock: see pawl.requeue_due
  with asleep as (
    select u.id, u.wait, u.waits_for, greatest(timestamptz 'epoch' + u.due_us * interval '1 us', v_now) as due, r.step, r.item, r.undo
    from unnest(p_ids, p_waits, p_at, p_for, p_due_us, v_verdicts) u (id, wait, at, waits_for, due_us, verdict)
    left join lateral pawl.record_read(u.at) r on true
    where u.verdict = 'WRITTEN' and u.wait is not null
  ), ended as (
    delete from pawl.lease l where l.id = any (array(select a.id from asleep a)) and not l.cancel returning l.*
  ), kept as (
    insert into pawl.delayed (id, due, domain_id, priority, attempt, max_attempts, extras)
    select e.id, a.due, e.domain_id, e.priority, 0, e.max_attempts, e.extras
    from ended e join asleep a on a.id = e.id
    returning 1
  ), noted as (
    update pawl.process p set wait = a.wait, wait_due = a.due, waits = a.waits_for, step = coalesce(a.step, p.step),
      item = case when a.step is null then p.item else a.item end, undo = case when a.step is null then p.undo else a.undo end,
      waited_at = case when a.wait <> 'WAITING_FOR_RETRY' then v_now end
    from asleep a where p.id = a.id
  )
  select (select count(*) from ended), (select count(*) from kept) into v_deleted, v_inserted;
  perform pawl.moved(v_deleted, v_inserted);
  v_canceled := array(
    select l.id from unnest(p_ids, p_waits, v_verdicts) u (id, wait, verdict)
    cross join lateral (select l.id from pawl.lease l where l.id = u.id and l.cancel limit 1) l
    where u.verdict = 'WRITTEN' and u.wait is not null);
  if cardinality(v_canceled) > 0 then
    perform pawl.process_decide(v_canceled, 'cancel', 'operator');
  end if;
  return v_verdicts;
end
$$;

-- Refuse ends that contradict the phase: FAILED before all compensations have ended, because what cannot be compensated is for an operator, and COMPLETED
-- after one has begun.
create or replace function pawl.write_ends_check (p_ids bigint[], p_ends text[], p_verdicts text[])
  returns void
  language plpgsql
as $$
declare
  v_end text := (
    select u.outcome
    from unnest(p_ids, p_ends, p_verdicts) u (id, outcome, verdict)
    cross join lateral (select p.phase from pawl.process p where p.id = u.id limit 1) p
    where u.verdict = 'WRITTEN' and (u.outcome = 'reject' and p.phase = 'compensating' or u.outcome = 'complete' and p.phase <> 'forward')
    limit 1);
begin
  if v_end = 'reject' then
    raise exception 'a process that is being compensated cannot end by reject before the phase compensated; fail has an operator decide'
      using errcode = 'QP001';
  elsif v_end = 'complete' then
    raise exception 'a process that is compensated cannot end by complete; it ends by reject after the phase compensated'
      using errcode = 'QP001';
  end if;
end
$$;

-- The verdicts of ends, as the process is now. MET for one whose compensation was asked for before, by an operator or by its deadline: it goes on with that. Code
-- decides by itself, but not after its deadline: see pawl.write_late.
create or replace function pawl.write_ends_decide (p_ids bigint[], p_ends text[], p_verdicts text[])
  returns text[]
  language plpgsql
as $$
declare
  v_verdicts text[] := p_verdicts;
  v_canceled bigint[] := array(
    select u.ord from unnest(p_ids, p_ends, p_verdicts) with ordinality u (id, outcome, verdict, ord)
    where u.verdict = 'WRITTEN' and u.outcome in ('complete', 'fail', 'reject') and exists (
        select from pawl.process_cancellations(u.id))
      and exists (select from pawl.process p where p.id = u.id and p.phase = 'forward' and p.definition_id is not null));
begin
  if cardinality(v_canceled) > 0 then
    v_verdicts := array(
      select case when u.ord = any (v_canceled) then 'MET' else u.verdict end
      from unnest(p_verdicts) with ordinality u (verdict, ord) order by u.ord);
  end if;
  perform pawl.write_ends_check(p_ids, p_ends, v_verdicts);
  return pawl.write_late(p_ids, p_ends, v_verdicts);
end
$$;

-- End processes.
create or replace function pawl.write_ends (
  p_ids bigint[], p_tokens bigint[], p_ends text[], p_failed text[], p_results jsonb[], p_errors text[], p_verdicts text[])
  returns text[]
  language plpgsql
as $$
declare
  v_verdicts text[] := p_verdicts;
begin
  if exists ( -- few: one query for most calls, in place of one for each reason
       select from unnest(p_ids, p_verdicts) u (id, verdict)
       cross join lateral (select p.phase, p.deadline from pawl.process p where p.id = u.id limit 1) p
       where u.verdict = 'WRITTEN'
         and (p.phase <> 'forward' or p.deadline is not null or exists (select from pawl.process_cancellations(u.id)))) then
    v_verdicts := pawl.write_ends_decide(p_ids, p_ends, v_verdicts);
  end if;
  if p_failed is not null then
    update pawl.process p set failed = u.failed
    from unnest(p_ids, p_ends, p_failed, v_verdicts) u (id, outcome, failed, verdict)
    where p.id = u.id and u.verdict = 'WRITTEN' and u.outcome in ('fail', 'reject') and u.failed is not null and p.phase = 'forward';
  end if;
  if 'reject' = any (p_ends) then
    perform pawl.process_orphan_note(array(
      select u.id from unnest(p_ids, p_ends, v_verdicts) u (id, outcome, verdict)
      where u.verdict = 'WRITTEN' and u.outcome = 'reject'), true);
  end if;
  perform from (
    select array_agg(u.id order by u.ord) as ids, array_agg(u.token order by u.ord) as tokens,
           array_agg(u.outcome order by u.ord) as outcomes,
           -- Without results and errors all of them are settled the short way.
           case when count(u.result) > 0 then array_agg(u.result order by u.ord) end as results,
           case when count(u.error) > 0 then array_agg(u.error order by u.ord) end as errors
    from unnest(p_ids, p_tokens, p_ends, p_results, p_errors, v_verdicts)
      with ordinality u (id, token, outcome, result, error, verdict, ord)
    where u.verdict = 'WRITTEN' and u.outcome <> 'continue') e
  cross join lateral pawl.settle_items(false, e.ids, e.tokens, e.outcomes, e.results, e.errors, null, null, null)
  where e.ids is not null;
  return v_verdicts;
end
$$;

-- Raises unless records have attempts, and times and awaited responses are in range: what a process waits for is read again by each response.
create or replace function pawl.write_guard (
  p_records jsonb[], p_errors text[], p_patches jsonb[], p_phases text[], p_waits text[], p_at jsonb[], p_for jsonb[], p_due_us bigint[])
  returns void
  language plpgsql
as $$
declare
  c_time_max constant bigint := 253402300799999999; -- the end of the year 9999
  c_error_max constant integer := 16384; -- programs write 8192 bytes, to which the engine adds what they are about
begin
  if p_records is not null and not pawl.records_are_valid(p_records) then
    raise exception 'records must be objects with a step, and an attempt from 0 to 32767' using errcode = 'QP001';
  end if;
  if p_at is not null and not pawl.records_are_valid(p_at) then
    raise exception 'at must be an object with a step' using errcode = 'QP001';
  end if;
  if 0 > any (p_due_us) or c_time_max < any (p_due_us) then
    raise exception 'due_us must be from 0 to %', c_time_max using errcode = 'QP001';
  end if;
  -- Each in two steps: the first one is an expression, the second one starts a query.
  if p_errors is not null then
    if exists (select from unnest(p_errors) e where octet_length(e) > c_error_max) then
      raise exception 'errors must have at most % bytes each', c_error_max using errcode = 'QP001';
    end if;
  end if;
  if p_patches is not null then
    if exists (select from unnest(p_patches) u (patch) where jsonb_typeof(u.patch) <> 'object') then
      raise exception 'patches must be objects' using errcode = 'QP001';
    end if;
  end if;
  if not array_remove(p_phases, null) <@ array['forward', 'compensating', 'compensated']
     or not array_remove(p_waits, null) <@ array['WAITING_FOR_REPLY', 'WAITING_FOR_ASYNC', 'WAITING_FOR_RETRY'] then
    raise exception 'phases must be forward, compensating or compensated, and waits WAITING_FOR_REPLY, WAITING_FOR_ASYNC or WAITING_FOR_RETRY'
      using errcode = 'QP001';
  end if;
  if p_for is not null then
    if exists (
         select from unnest(p_for) f
         where jsonb_typeof(f) <> 'array' or jsonb_path_exists(f, 'lax $[*] ? (!(@.count.type() == "number" && @.count >= 0 && @.count <= 999999999
           && (@.kind == "any" || (@.kind == "signal" || @.kind == "reply") && @.name.type() == "string")))')) then
      raise exception 'for must be an array of responses, each with its kind, name and count' using errcode = 'QP001';
    end if;
  end if;
end
$$;

-- A row per item:
--   WRITTEN    all of it
--   LOST       the lease has ended, or an item before it suspends or ends the process; nothing was written
--   STALE      the state has another version; nothing was written
--   MET        the record was written; instead of suspending, go on: a wait is complete. Instead of ending: its compensation was asked for
--   TOO_LARGE  the state would exceed its limit; nothing was written
--   BUSY       another transaction has the process or its lease locked; nothing was written, and the same write may be tried again
--   KNOWN      as WRITTEN, but the record was there before: a caller that has done the step's work in this transaction must roll back
--   ENDED      the record was written, and with it the process has ended: it was canceled without compensation while the step ran. Or it
--              should complete after its deadline, and has failed or is in the troubleshooting queue instead
-- version and state: the present ones, for STALE and MET and after a patch; the version also for BUSY. is_canceled: an operator wants it canceled and compensated, or its deadline has
-- passed with that action.
-- Times are in microseconds since 1970. p_records: see pawl.record_read; null: no record. p_versions 0: the patch depends on nothing that it read.
-- p_failed: with a phase or an end, the step that failed, as it is shown. p_end_errors: with a phase, why it is compensated.
-- p_waits: the status to show; then p_at is the record of the step in which it waits, p_for names the responses that resume it (see pawl.waits_read) and p_due_us when it
-- continues in any case. p_ends: an outcome of pawl.settle_items, or "continue", whose p_end_results is the first state of the next life, computed from that of
-- p_versions. p_offers: free handlers of the caller for what the ends resume (bus/resume_start.sql); started: of the first row, what has a lease with their
-- tokens. The functions above run with the planner settings of this one, and only here.
create or replace function pawl.process_write (
  p_ids bigint[], p_tokens bigint[], p_records jsonb[], p_results jsonb[], p_errors text[], p_patches jsonb[], p_versions bigint[], p_phases text[],
  p_failed text[], p_waits text[], p_at jsonb[], p_for jsonb[], p_due_us bigint[], p_ends text[], p_end_results jsonb[], p_end_errors text[],
  p_offers jsonb default null)
  returns table (ord integer, verdict text, version bigint, state jsonb, is_canceled boolean, started jsonb)
  language plpgsql security definer set search_path = pawl, pg_temp
  set plan = keyed_cached
as $$
#variable_conflict use_column
declare
  v_now timestamptz := pawl.now();
  v_count integer := cardinality(p_ids);
  v_verdicts text[]; -- of all items; joined by unnest(), because a subscript or "= any" per item would take the square of their number
  v_was_tried boolean;
  v_has_canceled boolean;
  v_known bigint[]; -- items whose record was there before
begin
  perform pawl.array_check('ids', p_ids, v_count, 'QP001'), pawl.array_check('tokens', p_tokens, v_count, 'QP001'),
          pawl.array_check('records', p_records, v_count, 'QP001', true), pawl.array_check('results', p_results, v_count, 'QP001', true);
  if num_nonnulls(p_errors, p_failed, p_patches, p_versions, p_phases, p_waits, p_at, p_for, p_due_us, p_ends, p_end_results, p_end_errors) > 0 then
    perform pawl.array_check('errors', p_errors, v_count, 'QP001', true), pawl.array_check('failed', p_failed, v_count, 'QP001', true),
            pawl.array_check('patches', p_patches, v_count, 'QP001', true), pawl.array_check('versions', p_versions, v_count, 'QP001', true),
            pawl.array_check('phases', p_phases, v_count, 'QP001', true), pawl.array_check('waits', p_waits, v_count, 'QP001', true),
            pawl.array_check('at', p_at, v_count, 'QP001', true), pawl.array_check('for', p_for, v_count, 'QP001', true),
            pawl.array_check('due_us', p_due_us, v_count, 'QP001', true), pawl.array_check('ends', p_ends, v_count, 'QP001', true),
            pawl.array_check('end_results', p_end_results, v_count, 'QP001', true),
            pawl.array_check('end_errors', p_end_errors, v_count, 'QP001', true);
  end if;
  perform pawl.json_check('results', p_results, 'QP001'), pawl.json_check('patches', p_patches, 'QP001');
  perform pawl.write_guard(p_records, p_errors, p_patches, p_phases, p_waits, p_at, p_for, p_due_us),
          pawl.lease_check(p_ids, p_tokens);
  select l.verdicts, l.was_tried, l.has_canceled into v_verdicts, v_was_tried, v_has_canceled
  from pawl.write_leases(p_ids, p_tokens, p_waits, p_ends) l;
  if v_count > 1 and (p_waits is not null or p_ends is not null) then
    v_verdicts := pawl.write_behind(p_ids, p_tokens, p_waits, p_ends, v_verdicts);
  end if;
  if p_patches is not null or p_waits is not null or p_phases is not null or p_ends && array['fail', 'reject', 'continue'] then
    v_verdicts := pawl.write_rows(p_ids, p_patches, p_waits, p_phases, p_ends, v_verdicts);
  end if;
  if p_phases is not null then
    v_verdicts := pawl.write_phases_check(p_ids, p_phases, v_verdicts);
  end if;
  if p_patches is not null then
    v_verdicts := pawl.write_patches_check(p_ids, p_records, p_patches, p_versions, v_verdicts);
  end if;
  if p_records is not null then
    v_known := pawl.write_records(p_ids, p_records, p_results, p_errors, p_patches, v_now, v_was_tried, v_verdicts);
  end if;
  if p_records is not null and v_has_canceled then
    v_verdicts := pawl.write_canceled(p_ids, p_records, p_phases, p_waits, p_ends, v_known, v_verdicts);
  end if;
  if p_phases is not null then
    perform pawl.write_phases(p_ids, p_phases, p_failed, p_end_errors, v_verdicts);
  end if;
  if p_waits is not null then
    v_verdicts := pawl.write_waits(p_ids, p_waits, p_at, p_for, p_due_us, v_verdicts);
  end if;
  if 'continue' = any (p_ends) then
    v_verdicts := pawl.write_continues(p_ids, p_ends, p_end_results, p_versions, v_verdicts);
  end if;
  if p_ends is not null then
    perform pawl.offers_set(p_offers) where p_offers is not null;
    v_verdicts := pawl.write_ends(p_ids, p_tokens, p_ends, p_failed, p_end_results, p_end_errors, v_verdicts);
  end if;
  return query
    select u.ord::integer, case when u.verdict = 'WRITTEN' and u.ord = any (v_known) then 'KNOWN' else u.verdict end, p.version,
           case when u.verdict <> 'BUSY' then p.state end,
           exists (select from pawl.process_cancellations(u.id)),
           case when p_offers is not null and u.ord = 1 then pawl.attached_resumed(p_ids, p_offers) end
    from unnest(p_ids, p_patches, v_verdicts) with ordinality u (id, patch, verdict, ord)
    left join lateral (
      select p.version, p.state from pawl.process p
      where p.id = u.id and (u.verdict in ('STALE', 'MET', 'BUSY') or u.verdict = 'WRITTEN' and u.patch is not null) limit 1) p on true
    order by u.ord;
end
$$;
