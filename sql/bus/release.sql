-- release.sql - undo a claim whose commands were not begun: its response did not reach the worker, or the worker cannot run them.

-- Queue leased commands again as if they had not been claimed: the attempt does not count. One whose cancellation was asked for
-- meanwhile ends here. A lease with another token, or one that another transaction
-- has locked, is left alone. Returns how many leases ended.
-- Lock order: leases by id, then the allocation lock, as extend and rescue do.
-- Errors: QU001 arrays of different length, with nulls, or not numbered from 1.
create or replace function pawl.release (p_ids bigint[], p_tokens bigint[])
  returns integer
  language plpgsql security definer set search_path = pawl, pg_temp
  set plan = keyed_cached
as $$
declare
  v_now timestamptz := pawl.now();
  v_held bigint[];
  v_canceled bigint[];
begin
  p_tokens := pawl.lease_tokens(p_ids, p_tokens);
  -- One index lookup per item, by lateral: a join could scan the leases first, with the dead entries of all that have ended.
  select array_agg(h.id) filter (where not h.cancel), array_agg(h.id) filter (where h.cancel)
  into v_held, v_canceled
  from (
    select l.id, l.cancel
    from (select u.* from unnest(p_ids, p_tokens) u (id, token) order by u.id) i
    cross join lateral (
      select l.id, l.cancel from pawl.lease l where l.id = i.id and l.token = i.token for update skip locked) l
  ) h;
  if v_canceled is not null then
    perform pawl.finish(v_canceled, 'CANCELED', 'CANCELED', null, 'canceled while it ran', null);
  end if;
  if v_held is not null then
    perform pawl.allocation_lock(2);
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
             (v_now, l.attempt - 1, 'RETRY_SCHEDULED', null, '{"reason": "released before it was begun"}')
    ) e (at, attempt, event, actor, details);
  end if;
  return coalesce(cardinality(v_held), 0) + coalesce(cardinality(v_canceled), 0);
end
$$;

-- The same, but each is queued again after its delay: for handlers that find that a command cannot be done yet, for a reason that is not the
-- command's (a rate limit of another service). The attempt does not count, and an order key is kept. Returns how many leases ended.
-- Lock order and errors: as pawl.release; QU001 also for a delay out of range.
create or replace function pawl.postpone (p_ids bigint[], p_tokens bigint[], p_delays_ms bigint[], p_reason text)
  returns integer
  language plpgsql security definer set search_path = pawl, pg_temp
  set plan = keyed_cached
as $$
declare
  v_now timestamptz;
  v_held bigint[];
  v_delays bigint[];
  v_canceled bigint[];
  v_deleted bigint;
  v_inserted bigint;
begin
  p_tokens := pawl.lease_tokens(p_ids, p_tokens);
  perform pawl.array_check('delays_ms', p_delays_ms, cardinality(p_ids), 'QU001');
  if exists (select from unnest(p_delays_ms) d where (d between 0 and 315360000000) is not true) then
    raise exception 'delay must be from 0 to 315360000000 ms' using errcode = 'QU001';
  end if;
  select array_agg(h.id) filter (where not h.cancel), array_agg(h.delay_ms) filter (where not h.cancel),
         array_agg(h.id) filter (where h.cancel)
  into v_held, v_delays, v_canceled
  from (
    select l.id, l.cancel, i.delay_ms
    from (select u.* from unnest(p_ids, p_tokens, p_delays_ms) u (id, token, delay_ms) order by u.id) i
    cross join lateral (
      select l.id, l.cancel from pawl.lease l where l.id = i.id and l.token = i.token for update skip locked) l
  ) h;
  if v_canceled is not null then
    perform pawl.finish(v_canceled, 'CANCELED', 'CANCELED', null, 'canceled while it ran', null);
  end if;
  if v_held is not null then
    perform pawl.allocation_lock(2);
    v_now := pawl.now(); -- under the lock: see pawl.requeue_due
    with item as (
      select u.id, u.delay_ms from unnest(v_held, v_delays) u (id, delay_ms)
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
               (v_now, l.attempt - 1, 'RETRY_SCHEDULED', null,
                jsonb_build_object('reason', coalesce(left(p_reason, 200), 'postponed'), 'delay_ms', i.delay_ms))
      ) e (at, attempt, event, actor, details)
    )
    select (select count(*) from released), (select count(*) from put) into v_deleted, v_inserted;
    perform pawl.moved(v_deleted, v_inserted);
  end if;
  return coalesce(cardinality(v_held), 0) + coalesce(cardinality(v_canceled), 0);
end
$$;
