-- finish.sql - the end of commands by a decision, not by the outcome of a handler; or their move to the troubleshooting queue.
-- Lock order: as in settle.sql.
-- Errors: XX000 a move lost a row.

-- Locks the rows of commands wherever they are, those of one table by id, so that two transactions that end the same commands cannot wait
-- for each other. queued, parked: where the rows of pawl.ready and pawl.parked are.
create or replace function pawl.finish_lock (p_ids bigint[], out queued tid[], out parked tid[])
  language plpgsql
as $$
begin
  perform from pawl.lease l where l.id = any (p_ids) order by l.id for update;
  perform from pawl.delayed d where d.id = any (p_ids) order by d.id for update;
  perform from pawl.tsq t where t.id = any (p_ids) order by t.id for update;
  parked := array(
    select p.tid
    from (select c.domain_id, c.order_key, c.id from pawl.command c where c.id = any (p_ids) and c.order_key is not null order by c.id) c
    cross join lateral (
      select p.ctid as tid from pawl.parked p
      where p.domain_id = c.domain_id and p.order_key = c.order_key and p.id = c.id for update) p);
  -- Row by row, as in settle; and rows of ready are never updated, so they are where they are found.
  queued := array(
    select f.tid
    from (select c.domain_id, c.priority, c.id as pos from pawl.command c where c.id = any (p_ids)
          union all
          select r.domain_id, r.priority, r.pos from pawl.ready r where r.id = any (p_ids) and r.pos <> r.id
          order by pos) p
    cross join lateral (
      select r.ctid as tid from pawl.ready r
      where r.domain_id = p.domain_id and r.priority = p.priority and r.pos = p.pos
      for update) f);
end
$$;

-- Locks the rows of commands that no worker has, where they are: delayed, in the troubleshooting queue, parked, or queued. A row that another transaction
-- has locked is not waited for. Returns the commands that are held: they are not claimed until the commit.
create or replace function pawl.commands_hold (p_ids bigint[])
  returns bigint[]
  language plpgsql
as $$
begin
  return array(select d.id from pawl.delayed d where d.id = any (p_ids) order by d.id for update skip locked)
    || array(select t.id from pawl.tsq t where t.id = any (p_ids) order by t.id for update skip locked)
    || array(
      select p.id
      from (select c.domain_id, c.order_key, c.id from pawl.command c where c.id = any (p_ids) and c.order_key is not null order by c.id) c
      cross join lateral (
        select p.id from pawl.parked p where p.domain_id = c.domain_id and p.order_key = c.order_key and p.id = c.id for update skip locked) p)
    || array(
      select f.id
      from (select c.domain_id, c.priority, c.id as pos from pawl.command c where c.id = any (p_ids)
            union all
            select r.domain_id, r.priority, r.pos from pawl.ready r where r.id = any (p_ids) and r.pos <> r.id
            order by pos) p
      cross join lateral (
        select r.id from pawl.ready r where r.domain_id = p.domain_id and r.priority = p.priority and r.pos = p.pos
        for update skip locked) f);
end
$$;

-- The end of commands wherever they are: leased, queued, delayed, parked or in the troubleshooting queue. Those that ended before are left
-- alone. p_error: the reason in the audit, and the command's error unless it is completed. Returns the ids that ended now; the caller
-- passes them to pawl.after_end once it holds all its row locks.
create or replace function pawl.finish_without_replies (
  p_ids bigint[], p_status text, p_event text, p_result jsonb, p_error text, p_actor text)
  returns bigint[]
  language plpgsql security definer set search_path = pawl, pg_temp
  set plan = keyed_cached
as $$
declare
  v_now timestamptz;
  v_queued tid[];
  v_parked tid[];
  v_done bigint[];
  v_inserted bigint;
begin
  select l.queued, l.parked into v_queued, v_parked from pawl.finish_lock(p_ids) l;
  v_now := pawl.now(); -- under the locks: after the claim that it may have waited for
  with leased as (
    delete from pawl.lease l where l.id = any (p_ids) returning l.id, l.domain_id, l.attempt, l.started_at, l.worker
  ), waiting as (
    delete from pawl.delayed d where d.id = any (p_ids) returning d.id, d.domain_id, d.attempt, null::timestamptz, null
  ), in_tsq as (
    delete from pawl.tsq t where t.id = any (p_ids) returning t.id, t.domain_id, t.attempt, null::timestamptz, null
  ), queued as (
    delete from pawl.ready r where r.ctid = any (v_queued) returning r.id, r.domain_id, r.attempt, null::timestamptz, null
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
             (v_now, p_event, p_actor, pawl.decision_details(p_actor, p_error))
    ) v (at, event, actor, details)
    where v.at is not null
  )
  select (select array_agg(e.id) from ended e), (select count(*) from kept) into v_done, v_inserted;
  perform pawl.moved(coalesce(cardinality(v_done), 0), v_inserted);
  if v_done is not null then
    perform pawl.order_advance(v_done);
    perform pawl.attached_ended(v_done, p_event);
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

-- The error of commands that were canceled while a worker had them.
create or replace function pawl.canceled_error ()
  returns text
  language sql immutable
as $$
  select 'canceled while it ran'
$$;

-- The end of such commands, when their worker is heard of next, or its lease has expired.
create or replace function pawl.finish_canceled (p_ids bigint[])
  returns void
  language plpgsql
as $$
begin
  perform pawl.finish(p_ids, 'CANCELED', 'CANCELED', null, pawl.canceled_error(), null);
end
$$;

-- To the troubleshooting queue, by a decision. Those that wait for an order key, have ended or are there stay where they are. Returns how many were moved.
create or replace function pawl.give_up_anywhere (p_ids bigint[], p_error text)
  returns bigint
  language sql
as $$
  select pawl.give_up(p_ids, p_error, l.queued) from pawl.finish_lock(p_ids) l
$$;
