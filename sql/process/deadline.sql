-- deadline.sql - deadlines of processes: given by the start, or else by the definition, and decided about when they pass.
--
-- What requeues commands decides (pawl.attached_due), so it needs no worker of the type. Actions:
--   fail          ends the process as FAILED
--   troubleshoot  moves it to the troubleshooting queue
--   compensate    has it compensated, as an operator's cancellation does
-- What each of them does is in decide.sql; here is when.
--
-- Invariants
--   1. It is decided about once, under the lock on the process's row: deadline_due is null afterwards.
--   2. Nothing happens to a process that has ended, was canceled, is being compensated, is in the troubleshooting queue, or that an operator had
--      tried again after the deadline.
--   3. An activation of a definition that runs decides itself: it stops the step at the deadline. Code that runs loses its lease by fail and
--      troubleshoot, so that nothing of it is written any more.
--   4. No process in code completes after its deadline: see pawl.write_ends.
-- Lock order: process rows by deadline; then, of one process after the other, the rows of its command, and what else pawl.process_decide locks. Locked rows
-- of processes and of their commands are skipped; the rest, such as the process that one replies to, is waited for, at most 20 ms each.
-- Errors: QP001 a deadline is malformed or out of range.

create or replace function pawl.deadline_error ()
  returns text
  language sql immutable
as $$
  select 'the deadline of the process has passed'
$$;

-- ---- what a start gives ----

-- A deadline as a start gives it: "7200000 ms" from when the process is due (p_due), or "2026-11-16T20:00:00Z"; behind it
-- may be the action: "7200000 ms, fail". given: the same in one spelling. A null has nulls.
create or replace function pawl.deadline_read (
  p_deadline text, p_due timestamptz, out given text, out at timestamptz, out action text)
  language plpgsql stable
  set datestyle = 'ISO'
as $$
declare
  c_ms_max constant bigint := 315360000000; -- ten years
  v_parts text[] := regexp_match(p_deadline,
    '^(?:([0-9]{1,15}) ms|([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:[.][0-9]{1,6})?Z))(?:, (troubleshoot|compensate|fail))?$');
begin
  if p_deadline is null then
    return;
  end if;
  if v_parts is null or v_parts[1]::bigint not between 1 and c_ms_max then
    raise exception 'deadline must be from 1 to % ms or a time, got "%"', c_ms_max, left(p_deadline, 80) using errcode = 'QP001';
  end if;
  begin
    at := coalesce(p_due + v_parts[1]::bigint * interval '1 ms', v_parts[2]::timestamptz);
  exception when datetime_field_overflow then
    raise exception 'deadline must be a time, got "%"', left(p_deadline, 80) using errcode = 'QP001';
  end;
  action := v_parts[3];
  given := concat_ws(', ', coalesce(v_parts[1]::bigint || ' ms', pawl.iso(at)), action);
end
$$;

-- The same from the arguments of pawl.start; null: none.
create or replace function pawl.deadline_write (p_deadline interval, p_deadline_at timestamptz, p_on_deadline text)
  returns text
  language plpgsql stable
as $$
declare
  c_deadline_max constant bigint := 3650::bigint * 86400000;
  v_deadline_ms numeric := floor(extract(epoch from p_deadline) * 1000); -- as in pawl.start_read
begin
  if p_deadline is not null and p_deadline_at is not null then
    raise exception 'deadline and deadline_at exclude each other' using errcode = 'QP001';
  end if;
  if p_on_deadline is null and p_deadline is null and p_deadline_at is null then
    return null;
  end if;
  if p_deadline is null and p_deadline_at is null then
    raise exception 'on_deadline needs a deadline' using errcode = 'QP001';
  end if;
  if (p_on_deadline in ('troubleshoot', 'compensate', 'fail')) is false then
    raise exception 'on_deadline must be troubleshoot, compensate or fail, got "%"', left(p_on_deadline, 80) using errcode = 'QP001';
  end if;
  if (v_deadline_ms between 1 and c_deadline_max) is false then
    raise exception 'deadline must be from 1 ms to 3650 days, got %', p_deadline using errcode = 'QP001';
  end if;
  if (p_deadline_at between timestamptz '0001-01-01 00:00:00+00' and timestamptz '9999-12-31 00:00:00+00') is false then
    raise exception 'deadline_at must be in the years 1 to 9999, got %', p_deadline_at using errcode = 'QP001';
  end if;
  return concat_ws(', ', coalesce(v_deadline_ms::bigint || ' ms', pawl.iso(p_deadline_at)), p_on_deadline);
end
$$;

-- Raises unless these are deadlines of processes.
create or replace function pawl.process_deadlines_check (p_domain text, p_deadlines text[])
  returns void
  language plpgsql
as $$
begin
  if p_domain not like 'process:%' then
    raise exception 'only processes have a deadline, and domain "%" has none', p_domain using errcode = 'QP001';
  end if;
  perform pawl.deadline_read(d, pawl.now()) from unnest(p_deadlines) d where d is not null;
end
$$;

-- The deadlines of processes that were just started. p_made: the new ones, p_ids and p_deadlines: of all items.
create or replace function pawl.process_deadlines_set (p_made bigint[], p_ids uuid[], p_deadlines text[])
  returns void
  language plpgsql security definer set search_path = pawl, pg_temp
  set plan = keyed_cached
as $$
declare
  -- By id; of several items with one id the first one counts. Not a join of two lists, which would take the square of their length.
  v_given jsonb := (
    select jsonb_object_agg(u.id, u.deadline order by u.ord desc) from unnest(p_ids, p_deadlines) with ordinality u (id, deadline, ord));
begin
  update pawl.process p
  set deadline = d.at, deadline_due = d.at, deadline_given = d.given,
      deadline_action = coalesce(d.action, (select f.deadline_action from pawl.process_definition f where f.id = p.definition_id))
  from unnest(p_made) m (id)
  cross join lateral (select c.command_id from pawl.command c where c.id = m.id limit 1) c
  cross join lateral pawl.deadline_read(v_given ->> c.command_id::text, pawl.process_due(m.id)) d
  where p.id = m.id and d.at is not null;
end
$$;

-- Why a repeated start is refused: its deadline is another one. Null: it is the same, or the process is gone.
create or replace function pawl.process_deadline_refusal (p_domain_id integer, p_command_id uuid, p_deadline text)
  returns text
  language plpgsql stable
as $$
begin
  return (
    select case when p.deadline_given is distinct from d.given then pawl.sent_otherwise('deadline', d.given, p.deadline_given) end
    from pawl.command c
    cross join lateral (select p.deadline_given from pawl.process p where p.id = c.id limit 1) p
    cross join lateral pawl.deadline_read(p_deadline, pawl.now()) d
    where c.command_id = p_command_id and c.domain_id = p_domain_id);
end
$$;

-- ---- when it passes ----

-- Decide about a process whose row is locked and whose deadline has passed. False: another transaction has one of its other rows locked, or
-- it cannot be done for another reason, which is a warning. The row of its command is not waited for: an application may have claimed it, in a transaction
-- that stays open, and the deadlines of others are obeyed by the same call.
create or replace function pawl.process_deadline_pass (p_id bigint, p_action text)
  returns boolean
  language plpgsql security definer set search_path = pawl, pg_temp set lock_timeout = '20ms'
as $$
begin
  perform from pawl.lease l where l.id = p_id for update skip locked;
  if not found and cardinality(pawl.commands_hold(array[p_id])) = 0 then
    return false;
  end if;
  perform pawl.process_decide(array[p_id], p_action, 'deadline');
  return true;
exception when others then
  if pawl.is_transient(sqlstate) then
    raise;
  end if;
  if sqlstate <> '55P03' then
    raise warning 'the deadline of process number % cannot be obeyed: %', p_id, sqlerrm;
  end if;
  return false;
end
$$;

-- Has its deadline, which has passed, nothing to decide? See the invariants.
create or replace function pawl.process_deadline_is_void (p_id bigint)
  returns boolean
  language plpgsql stable
as $$
begin
  return not exists (
      select from pawl.process p where p.id = p_id and p.phase = 'forward' and (p.retried_at >= p.deadline) is not true)
    or exists (select from pawl.outcome o where o.id = p_id) or exists (select from pawl.tsq t where t.id = p_id)
    or exists (select from pawl.lease l where l.id = p_id and l.cancel) or pawl.process_is_canceled(p_id);
end
$$;

-- Decide about at most p_limit processes whose deadlines have passed. What cannot be decided now is tried again after a second, later the longer it
-- is overdue. The call ends after half a second, because the rows of the others are locked meanwhile. Those that are left come first then, because they have been due for longer. Returns whether none is left.
create or replace function pawl.process_deadlines_pass (p_limit integer, p_now timestamptz)
  returns boolean
  language plpgsql security definer set search_path = pawl, pg_temp
  set plan = keyed_cached
as $$
declare
  c_time_max constant interval := interval '500 ms';
  v_start timestamptz := clock_timestamp();
  v_ids bigint[];
  v_void bigint[];
  v_row record;
begin
  v_ids := array(
    select p.id from pawl.process p
    left join lateral (select true as runs from pawl.lease l where l.id = p.id limit 1) l on p.definition_id is not null
    where p.deadline_due <= p_now and l.runs is null
    order by p.deadline_due limit p_limit for update of p skip locked);
  if cardinality(v_ids) = 0 then
    return true;
  end if;
  v_void := array(select i from unnest(v_ids) i where pawl.process_deadline_is_void(i)); -- in a new snapshot, under the locks
  update pawl.process p set deadline_due = null where p.id = any (v_void);
  for v_row in
    select p.id, p.deadline_action from pawl.process p where p.id = any (v_ids) and p.id <> all (v_void) order by p.deadline_due, p.id
  loop
    if not pawl.process_deadline_pass(v_row.id, coalesce(v_row.deadline_action, 'troubleshoot')) then
      update pawl.process p
      set deadline_due = p_now + greatest(interval '1 s', least((p_now - p.deadline) / 10, interval '1 min')) where p.id = v_row.id;
    end if;
    if clock_timestamp() > v_start + c_time_max then
      return false;
    end if;
  end loop;
  return cardinality(v_ids) < p_limit;
end
$$;

-- When a deadline passes next, between these times; null: none does.
create or replace function pawl.process_deadline_next (p_from timestamptz, p_to timestamptz)
  returns timestamptz
  language plpgsql stable
as $$
begin
  return (select p.deadline_due from pawl.process p where p.deadline_due > p_from and p.deadline_due < p_to order by p.deadline_due limit 1);
end
$$;

-- ---- when code ends ----

-- Processes in code that complete: verdict ENDED for those whose deadline has passed. They fail, or go to the troubleshooting queue, also where they
-- should be compensated: their function has ended, and had no call in which it could learn of it. A retry completes them. BUSY:
-- another transaction has the process locked. Not those whose deadline was decided about (deadline_due is null) otherwise than by asking for the
-- compensation. One whose cancellation was accepted is canceled.
create or replace function pawl.write_late (p_ids bigint[], p_ends text[], p_verdicts text[])
  returns text[]
  language plpgsql
as $$
declare
  v_now timestamptz := pawl.now();
  v_late bigint[] := array(
    select distinct u.id from unnest(p_ids, p_ends, p_verdicts) u (id, outcome, verdict)
    cross join lateral (
      select p.deadline, p.deadline_due, p.retried_at from pawl.process p
      where p.id = u.id and p.deadline <= v_now and p.definition_id is null and p.phase = 'forward' limit 1) p
    where u.verdict = 'WRITTEN' and u.outcome = 'complete' and (p.retried_at >= p.deadline) is not true
      and (p.deadline_due is not null or exists (select from pawl.process_cancellations(u.id) c where c.key = 'deadline'))
      and not exists (select from pawl.process_cancellations(u.id) c where c.key <> 'deadline')
    order by 1);
  v_held bigint[];
begin
  if cardinality(v_late) = 0 then
    return p_verdicts;
  end if;
  v_held := array(
    select p.id from unnest(v_late) i (id) cross join lateral (select p.id from pawl.process p where p.id = i.id for update skip locked) p);
  perform pawl.process_decide(d.ids, d.action, 'late')
  from (select array_agg(p.id order by p.id) as ids, a.action
        from pawl.process p
        cross join lateral (
          select case when exists (select from pawl.lease l where l.id = p.id and l.cancel) then 'cancel'
                      else coalesce(p.deadline_action, 'troubleshoot') end as action) a
        where p.id = any (v_held) group by a.action order by a.action) d;
  return array(
    select case when u.verdict <> 'WRITTEN' or u.id <> all (v_late) then u.verdict when u.id = any (v_held) then 'ENDED' else 'BUSY' end
    from unnest(p_ids, p_verdicts) with ordinality u (id, verdict, ord) order by u.ord);
end
$$;
