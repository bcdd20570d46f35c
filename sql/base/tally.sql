-- tally.sql - counts of many processes, summed where alerts are about all of them.
-- Invariant: a flush (source, number) is counted once, however often it is repeated.
-- Lock order: none; old rows that another flush is deleting are skipped.
-- Errors: PW003 an argument is missing or out of range, or a name is not counted.

-- What a process has counted since its last flush. Returns how many rows were new.
create or replace function pawl.tally_add (p_source uuid, p_flush bigint, p_names text[], p_counts bigint[])
  returns bigint
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
declare
  v_now timestamptz := pawl.now();
  v_new bigint;
begin
  perform pawl.array_check('names', p_names, cardinality(p_names), 'PW003'),
          pawl.array_check('counts', p_counts, cardinality(p_names), 'PW003');
  if (p_source is not null and p_flush > 0 and cardinality(p_names) <= 10) is not true then
    raise exception 'source and flush must be given, and at most 10 names' using errcode = 'PW003';
  end if;
  if exists (
    select from unnest(p_names, p_counts) u (name, count)
    where (u.name in ('handlers', 'handlers_failed', 'rate_limited') and u.count between 1 and 1000000000) is not true)
  then
    raise exception 'names must be of handlers, handlers_failed, rate_limited, and counts from 1 to 1000000000'
      using errcode = 'PW003';
  end if;
  insert into pawl.tally (at, name, count, source, flush)
  select v_now, u.name, u.count, p_source, p_flush from unnest(p_names, p_counts) u (name, count)
  on conflict (source, flush, name) do nothing;
  get diagnostics v_new = row_count;
  -- Ten times what is added at most, so that the table does not grow. One name after the other: the index begins with
  -- it.
  delete from pawl.tally t
  where (t.source, t.flush, t.name) in (
    select o.source, o.flush, o.name
    from unnest(p_names) n (name)
    cross join lateral (
      select o.source, o.flush, o.name from pawl.tally o
      where o.name = n.name and o.at < v_now - interval '2 hours'
      order by o.at limit 10 for update skip locked) o);
  return v_new;
end
$$;

-- Sums over all processes, at most 2^53 - 1, because this is part of the statement by which pods share their tasks and
-- must not fail: handlers that ended and that failed within 5 minutes, and peers' requests to slow down within an hour.
create or replace function pawl.tally_sum ()
  returns table (handlers bigint, handlers_failed bigint, rate_limited bigint)
  language sql stable security definer set search_path = pawl, pg_temp
as $$
  select (select least(coalesce(sum(t.count), 0), 9007199254740991)::bigint from pawl.tally t
          where t.name = 'handlers' and t.at > pawl.now() - interval '5 minutes'),
         (select least(coalesce(sum(t.count), 0), 9007199254740991)::bigint from pawl.tally t
          where t.name = 'handlers_failed' and t.at > pawl.now() - interval '5 minutes'),
         (select least(coalesce(sum(t.count), 0), 9007199254740991)::bigint from pawl.tally t
          where t.name = 'rate_limited' and t.at > pawl.now() - interval '1 hour')
$$;
