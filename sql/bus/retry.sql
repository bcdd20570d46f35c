-- retry.sql - commands that have not ended: queued again, or moved to the troubleshooting queue.
-- Locks: the rows of the commands, which the caller has locked; then, for an order key, see order.sql.
-- Errors: XX000 a move lost a row.

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
  perform pawl.command_allocation_lock();
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

-- To the troubleshooting queue, from where they are: leased, delayed, or queued in the rows p_queued of pawl.ready. The caller has locked these rows; see
-- pawl.give_up_anywhere for one that has not. Returns how many were moved.
create or replace function pawl.give_up (p_ids bigint[], p_error text, p_queued tid[] default '{}')
  returns bigint
  language plpgsql
as $$
declare
  v_now timestamptz := pawl.now();
  v_deleted bigint;
  v_inserted bigint;
begin
  with leased as (
    delete from pawl.lease l where l.id = any (p_ids) returning l.id, l.domain_id, l.attempt, l.started_at, l.worker
  ), waiting as (
    delete from pawl.delayed d where d.id = any (p_ids) returning d.id, d.domain_id, d.attempt, null::timestamptz, null
  ), queued as (
    delete from pawl.ready r where r.ctid = any (p_queued) returning r.id, r.domain_id, r.attempt, null::timestamptz, null
  ), taken as (
    select * from leased union all select * from waiting union all select * from queued
  ), put as (
    insert into pawl.tsq (id, since, domain_id, attempt, error)
    select t.id, v_now, t.domain_id, t.attempt, p_error
    from taken t
    returning 1
  ), recorded as (
    insert into pawl.event (id, at, domain_id, attempt, event, actor, details)
    select t.id, e.at, t.domain_id, t.attempt, e.event, e.actor, e.details
    from taken t
    cross join lateral (values (t.started_at, 'RECEIVED', t.worker, null),
                               (v_now, 'MOVED_TO_TSQ', null, jsonb_build_object('error', p_error))) e (at, event, actor, details)
    where e.at is not null
  )
  select (select count(*) from taken), (select count(*) from put) into v_deleted, v_inserted;
  perform pawl.moved(v_deleted, v_inserted);
  perform pawl.order_release(p_ids);
  return v_inserted;
end
$$;
