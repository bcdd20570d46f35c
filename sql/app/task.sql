-- task.sql - leases on periodic tasks, so that one of many pods runs each.
-- Invariant: a task has one holder until its lease ends. Leases save work; the tasks themselves are safe to run twice.
-- Lock order: rows by name; what another pod has locked is skipped, so nothing waits. A pod that gets no task only reads.
-- Errors: PW003 a name, holder or time is missing or out of range.

-- Renew the leases that p_holder has, take those that ended, and those that end later than any lease can: the clock was ahead when they
-- were taken. Returns the names that are its own until p_lease_ms from now. At most 100 in a call, and a thousand in all:
-- those that are there are always renewed.
create or replace function pawl.task_claim (p_names text[], p_holder uuid, p_lease_ms integer)
  returns setof text
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
declare
  v_now   timestamptz := pawl.now();
  v_until timestamptz;
  v_mine  text[];
begin
  perform pawl.array_check('names', p_names, cardinality(p_names), 'PW003');
  if (p_holder is not null and p_lease_ms between 1 and 3600000) is not true then
    raise exception 'holder must be given and lease_ms must be from 1 to 3600000' using errcode = 'PW003';
  end if;
  if exists (select from unnest(p_names) n where (char_length(n) between 1 and 63) is not true) then
    raise exception 'names must have 1 to 63 characters each' using errcode = 'PW003';
  end if;
  if cardinality(p_names) > 100 then
    raise exception 'names must be at most 100' using errcode = 'PW003';
  end if;
  v_until := v_now + p_lease_ms * interval '1 ms';
  v_mine := array(
    select t.name from pawl.task t
    where t.name = any (p_names) and (t.holder = p_holder or t.until <= v_now or t.until > v_until + interval '1 min')
    order by t.name
    for update skip locked);
  update pawl.task t set holder = p_holder, until = v_until where t.name = any (v_mine);
  return query select unnest(v_mine);
  if (select count(*) from pawl.task t where t.name = any (p_names)) < cardinality(p_names) then
    -- Delete names that no holder renews, so that a login cannot use up all places for ever.
    delete from pawl.task t where t.name in (
      select d.name from pawl.task d where d.until < v_now - interval '1 hour' and d.name <> all (p_names) for update skip locked);
    if (select count(*) from (select from pawl.task t limit 1000) t) = 1000 then
      raise exception 'there are at most 1000 tasks' using errcode = 'PW003';
    end if;
    return query
      insert into pawl.task as t (name, holder, until)
      select n.name, p_holder, v_until from (select distinct u.name from unnest(p_names) u (name) order by u.name) n
      on conflict (name) do nothing
      returning t.name;
  end if;
end
$$;

-- A pod that stops lets other pods take over without waiting for its leases to end.
create or replace function pawl.task_release (p_holder uuid)
  returns void
  language sql security definer set search_path = pawl, pg_temp
as $$
  delete from pawl.task t where t.name in (select l.name from pawl.task l where l.holder = p_holder for update skip locked)
$$;
