-- release.sql - undo a claim whose commands were not begun: its response did not reach the worker, or the worker cannot run them.

-- Queue leased commands again as if they had not been claimed: the attempt does not count. One whose cancellation was asked for
-- meanwhile ends here. A lease with another token, or one that another transaction has locked, is left alone.
-- Verdicts: RELEASED, CANCELED, LOST and BUSY as of pawl.extend. p_unflushed: as of pawl.lease_commit.
-- Lock order: leases by id, then the allocation lock, as extend and rescue do.
-- Errors: QU001 arrays of different length, with nulls, or not numbered from 1.
create or replace function pawl.release (p_ids bigint[], p_tokens bigint[], p_unflushed boolean default false)
  returns table (ord integer, verdict text)
  language plpgsql security definer set search_path = pawl, pg_temp
  set plan = keyed_cached
as $$
#variable_conflict use_column
declare
  v_now timestamptz := pawl.now();
  v_held bigint[];
  v_released integer[];
  v_canceled integer[];
begin
  perform pawl.lease_check(p_ids, p_tokens);
  select h.ids, h.ords, h.canceled into v_held, v_released, v_canceled from pawl.lease_hold(p_ids, p_tokens, p_unflushed) h;
  if v_held is not null then
    perform pawl.command_allocation_lock();
    with released as (
      delete from pawl.lease l where l.id = any (v_held) returning l.*
    ), queued as (
      insert into pawl.ready (domain_id, priority, pos, id, attempt, max_attempts, extras)
      select l.domain_id, l.priority, nextval('pawl.command_seq'), l.id, l.attempt - 1, l.max_attempts, l.extras
      from (select * from released order by released.id) l
    )
    insert into pawl.event (id, at, domain_id, attempt, event, actor, details)
    select l.id, e.at, l.domain_id, e.attempt, e.event, e.actor, e.details
    from released l
    cross join lateral (
      values (l.started_at, l.attempt, 'RECEIVED', l.worker, null::jsonb),
             (v_now, l.attempt - 1, 'RETRY_SCHEDULED', null, '{"reason": "released by its worker: the attempt does not count"}')
    ) e (at, attempt, event, actor, details);
  end if;
  return query select v.ord, v.verdict from pawl.lease_verdicts(p_ids, p_tokens, v_released, 'RELEASED', v_canceled) v;
end
$$;

-- The same, but each is queued again after its delay: for handlers that find that a command cannot be done yet, for a reason that is not the
-- command's (a rate limit of another service). The attempt does not count, and an order key is kept. The audit has it at most
-- once a minute for one reason, because a transaction that stays open may have a command postponed for hours. Returns how many leases ended.
-- Lock order and errors: as pawl.release; QU001 also for a delay out of range.
create or replace function pawl.postpone (p_ids bigint[], p_tokens bigint[], p_delays_ms bigint[], p_reason text)
  returns integer
  language plpgsql security definer set search_path = pawl, pg_temp
  set plan = keyed_cached
as $$
declare
  v_reason text := coalesce(left(p_reason, 200), 'postponed');
  v_now timestamptz;
  v_held bigint[];
  v_ords integer[];
  v_canceled integer;
  v_deleted bigint;
  v_inserted bigint;
begin
  perform pawl.lease_check(p_ids, p_tokens);
  perform pawl.array_check('delays_ms', p_delays_ms, cardinality(p_ids), 'QU001');
  perform pawl.delays_check(p_delays_ms, false);
  select h.ids, h.ords, cardinality(h.canceled) into v_held, v_ords, v_canceled from pawl.lease_hold(p_ids, p_tokens, false) h;
  if v_held is not null then
    perform pawl.command_allocation_lock();
    v_now := pawl.now(); -- under the lock: see pawl.requeue_due
    with item as (
      select u.id, p_delays_ms[u.ord] as delay_ms from unnest(v_held, v_ords) u (id, ord)
    ), released as (
      delete from pawl.lease l where l.id = any (v_held) returning l.*
    ), put as (
      insert into pawl.delayed (id, due, domain_id, priority, attempt, max_attempts, extras)
      select l.id, v_now + i.delay_ms * interval '1 ms', l.domain_id, l.priority, l.attempt - 1, l.max_attempts, l.extras
      from item i join released l on l.id = i.id
      returning 1
    ), noted as (
      insert into pawl.event (id, at, domain_id, attempt, event, actor, details)
      select l.id, e.at, l.domain_id, e.attempt, e.event, e.actor, e.details
      from item i join released l on l.id = i.id
      cross join lateral (
        values (l.started_at, l.attempt, 'RECEIVED', l.worker, null::jsonb),
               (v_now, l.attempt - 1, 'RETRY_SCHEDULED', null, jsonb_build_object('reason', v_reason, 'delay_ms', i.delay_ms))
      ) e (at, attempt, event, actor, details)
      where not exists (
        select from pawl.event n
        where n.id = l.id and n.at > v_now - interval '1 min' and n.event = 'RETRY_SCHEDULED' and n.details ->> 'reason' = v_reason)
    )
    select (select count(*) from released), (select count(*) from put) into v_deleted, v_inserted;
    perform pawl.moved(v_deleted, v_inserted);
  end if;
  return coalesce(cardinality(v_held), 0) + coalesce(v_canceled, 0);
end
$$;
