-- snooze.sql - a handler puts its command off: it is due later, and the attempt does not count.
--
-- Bounds: a command that is snoozed forever would never reach an operator. From 10,000 snoozes on, or 30 days after its first one, a snooze counts as a
-- retry, so it ends in the troubleshooting queue when its attempts are exhausted. An operator's retry begins anew. A delay is 1 s at least, so that a handler that
-- always snoozes does not keep a worker busy.
-- Locks: as retry.sql; the command's row in pawl.snooze is written under the lock of its lease only.
-- Errors: QU001 a delay is out of range. XX000 a move lost a row.

-- Raises unless the delays of snoozes are in range.
create or replace function pawl.snooze_check (p_outcomes text[], p_delays_ms bigint[])
  returns void
  language plpgsql immutable
as $$
begin
  if exists (select from unnest(p_outcomes, p_delays_ms) u (outcome, delay_ms) where u.outcome = 'snooze' and u.delay_ms not between 1000 and 2592000000) then
    raise exception 'delay of a snooze must be from 1000 to 2592000000 ms, got %',
      (select u.delay_ms from unnest(p_outcomes, p_delays_ms) u (outcome, delay_ms)
       where u.outcome = 'snooze' and u.delay_ms not between 1000 and 2592000000 limit 1) using errcode = 'QU001';
  end if;
end
$$;

-- Count a snooze. False: the command has been snoozed too often, or for too long.
create or replace function pawl.snooze_count (p_id bigint, p_now timestamptz)
  returns boolean
  language plpgsql
as $$
declare
  c_most constant integer := 10000;
  c_longest constant interval := interval '30 days';
  v_is_counted boolean;
begin
  insert into pawl.snooze as s (id, count, since) values (p_id, 1, p_now)
  on conflict (id) do update set count = s.count + 1 where s.count < c_most and p_now < s.since + c_longest
  returning true into v_is_counted;
  return coalesce(v_is_counted, false);
end
$$;

-- A leased command, whose lease the caller has locked, is due after the delay. p_reason: as the handler gave it. Of snoozes for one reason the audit has one a minute.
-- False: nothing was done, because the snooze counts as a retry.
create or replace function pawl.snooze_later (p_id bigint, p_reason text, p_delay_ms bigint, p_now timestamptz)
  returns boolean
  language plpgsql
as $$
declare
  v_is_noted boolean;
  v_now timestamptz;
  v_deleted bigint;
  v_inserted bigint;
begin
  if not pawl.snooze_count(p_id, p_now) then
    return false;
  end if;
  v_is_noted := exists (
    select from pawl.event e
    where e.id = p_id and e.at > p_now - interval '1 min' and e.event = 'SNOOZED' and e.details ->> 'reason' is not distinct from p_reason);
  perform pawl.command_allocation_lock();
  v_now := pawl.now(); -- under the lock: see pawl.requeue_due
  with taken as (
    delete from pawl.lease l where l.id = p_id returning l.*
  ), put as (
    insert into pawl.delayed (id, due, domain_id, priority, attempt, max_attempts, extras)
    select t.id, v_now + p_delay_ms * interval '1 ms', t.domain_id, t.priority, t.attempt - 1, t.max_attempts, t.extras
    from taken t
    returning 1
  ), recorded as (
    insert into pawl.event (id, at, domain_id, attempt, event, actor, details)
    select t.id, e.at, t.domain_id, e.attempt, e.event, e.actor, e.details
    from taken t
    cross join lateral (
      values (t.started_at, t.attempt, 'RECEIVED', t.worker, null::jsonb),
             (v_now, t.attempt - 1, 'SNOOZED', null, jsonb_strip_nulls(jsonb_build_object('reason', p_reason, 'delay_ms', p_delay_ms)))
    ) e (at, attempt, event, actor, details)
    where not v_is_noted
  )
  select (select count(*) from taken), (select count(*) from put) into v_deleted, v_inserted;
  perform pawl.moved(v_deleted, v_inserted);
  return true;
end
$$;
