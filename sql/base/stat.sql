-- stat.sql - numbers over time: what processes count, by minute for 14 days and by hour for a year.
--
-- Each process stores what it has counted since its last flush, one row per measure and label, under the minute of the
-- database's clock. No row is added to: sums are made when they are read. A process that dies loses what it has not
-- stored, at most a minute.
-- Invariant: a flush (source, number) is counted once, however often it is repeated. Numbers of a source grow.
-- Lock order: the row of the source; in retention the row of the clock, then old rows that no other call deletes.
-- Errors: PW003 an argument is missing or out of range.

-- Upper bounds of the buckets of times, in microseconds, as in base/metric.c; one more bucket holds larger values.
create or replace function pawl.stat_bounds ()
  returns bigint[]
  language sql immutable
as $$
  select array[1000, 5000, 10000, 25000, 50000, 100000, 250000, 500000, 1000000, 2500000, 10000000, 30000000, 120000000,
               600000000, 3600000000, 21600000000]
$$;

-- The time below which this share of the values is, by linear interpolation within a bucket. Values above the last
-- bound count as that. Null without values.
create or replace function pawl.stat_quantile_us (p_buckets bigint[], p_share double precision)
  returns bigint
  language plpgsql immutable
as $$
declare
  v_bounds constant bigint[] := pawl.stat_bounds();
  v_rank double precision := p_share * (select sum(b) from unnest(p_buckets) b);
  v_below bigint := 0;
begin
  for i in 1 .. coalesce(cardinality(p_buckets), 0) loop
    if p_buckets[i] > 0 and v_below + p_buckets[i] >= v_rank then
      if i > cardinality(v_bounds) then
        return v_bounds[cardinality(v_bounds)];
      end if;
      return coalesce(v_bounds[i - 1], 0)
        + ((v_bounds[i] - coalesce(v_bounds[i - 1], 0)) * (v_rank - v_below) / p_buckets[i])::bigint;
    end if;
    v_below := v_below + p_buckets[i];
  end loop;
  return null;
end
$$;

-- Element by element; an array that is null or shorter has zeros there.
create or replace function pawl.stat_buckets_add (p_a bigint[], p_b bigint[])
  returns bigint[]
  language sql immutable
as $$
  select case when p_b is null then p_a when p_a is null then p_b
    else array(select coalesce(p_a[n], 0) + coalesce(p_b[n], 0)
               from generate_series(1, greatest(cardinality(p_a), cardinality(p_b))) n order by n) end
$$;

do $$
begin
  create aggregate pawl.stat_buckets_sum (bigint[]) (sfunc = pawl.stat_buckets_add, stype = bigint[]);
exception when duplicate_function then
  null;
end
$$;

-- What a process has counted since its last flush. p_buckets: per row null, or an array as text. Returns how many rows
-- are new: 0 for a repeat.
create or replace function pawl.stat_add (
  p_source uuid, p_flush bigint, p_measures text[], p_labels text[], p_counts bigint[], p_buckets text[])
  returns bigint
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
declare
  v_now timestamptz := pawl.now();
  v_new bigint;
begin
  perform pawl.array_check('measures', p_measures, cardinality(p_measures), 'PW003'),
          pawl.array_check('labels', p_labels, cardinality(p_measures), 'PW003'),
          pawl.array_check('counts', p_counts, cardinality(p_measures), 'PW003'),
          pawl.array_check('buckets', p_buckets, cardinality(p_measures), 'PW003', true);
  if (p_source is not null and p_flush > 0 and cardinality(p_measures) between 1 and 5000) is not true then
    raise exception 'source and flush must be given, and from 1 to 5000 rows' using errcode = 'PW003';
  end if;
  if exists (
    select from unnest(p_measures, p_labels, p_counts, p_buckets) u (measure, label, count, buckets)
    where (u.measure ~ '^[a-z][a-z0-9_]{0,30}$' and char_length(u.label) <= 200 and u.count between 1 and 1000000000000
           and (u.buckets is null or u.buckets ~ '^\{[0-9]{1,13}(,[0-9]{1,13}){0,16}\}$')) is not true)
  then
    raise exception 'measures must be names, labels at most 200 characters, counts at most 1000000000000, buckets 17'
      using errcode = 'PW003';
  end if;
  insert into pawl.stat_source as s (source, flush, at) values (p_source, p_flush, v_now)
  on conflict (source) do update set flush = excluded.flush, at = excluded.at where s.flush < excluded.flush;
  if not found then
    return 0;
  end if;
  insert into pawl.stat (at, measure, label, source, flush, count, buckets)
  select date_trunc('minute', v_now), u.measure, u.label, p_source, p_flush, u.count, u.buckets::bigint[]
  from unnest(p_measures, p_labels, p_counts, p_buckets) u (measure, label, count, buckets)
  on conflict do nothing;
  get diagnostics v_new = row_count;
  return v_new;
end
$$;

-- What a monitor does once a minute: sums up to p_hours hours that have ended, and deletes up to p_limit rows of each
-- table that are older than 14 days or a year. An hour is summed from its rows, so it may be summed twice. It is over
-- for five minutes: rows get the minute of their insert, and a transaction that inserts them ends sooner. Returns how
-- many rows were deleted.
create or replace function pawl.stat_maintain (p_limit integer default 10000, p_hours integer default 24)
  returns bigint
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
declare
  v_now timestamptz := pawl.now();
  v_hour timestamptz;
  v_gone bigint;
  v_all bigint := 0;
begin
  if (p_limit between 1 and 100000 and p_hours between 1 and 1000) is not true then
    raise exception 'limit must be from 1 to 100000 and hours from 1 to 1000' using errcode = 'PW003';
  end if;
  select c.summed_until into v_hour from pawl.stat_clock c for update skip locked;
  for n in 1 .. p_hours loop
    exit when (v_hour + interval '65 minutes' <= v_now) is not true;
    insert into pawl.stat_hour as h (at, measure, label, count, buckets)
    select v_hour, s.measure, s.label, sum(s.count)::bigint, pawl.stat_buckets_sum(s.buckets)
    from pawl.stat s
    where s.at >= v_hour and s.at < v_hour + interval '1 hour'
    group by s.measure, s.label
    on conflict (measure, label, at) do update set count = excluded.count, buckets = excluded.buckets;
    v_hour := coalesce(
      (select date_trunc('hour', s.at) from pawl.stat s where s.at >= v_hour + interval '1 hour' order by s.at limit 1),
      date_trunc('hour', v_now));
    update pawl.stat_clock set summed_until = v_hour;
  end loop;
  if not pawl.retention_ready() then
    return 0;
  end if;
  delete from pawl.stat s where s.ctid = any (array(
    select o.ctid from pawl.stat o where o.at < v_now - interval '14 days' and o.at < v_hour
    order by o.at limit p_limit for update skip locked));
  get diagnostics v_gone = row_count;
  v_all := v_all + v_gone;
  delete from pawl.stat_hour h where h.ctid = any (array(
    select o.ctid from pawl.stat_hour o where o.at < v_now - interval '366 days'
    order by o.at limit p_limit for update skip locked));
  get diagnostics v_gone = row_count;
  v_all := v_all + v_gone;
  delete from pawl.stat_source s where s.source = any (array(
    select o.source from pawl.stat_source o where o.at < v_now - interval '1 day'
    limit p_limit for update skip locked));
  return v_all;
end
$$;

-- A measure over time, oldest first: one row per step that has any. p_label: of one domain or route; null: of all,
-- summed. Steps of whole hours are read from the sums of hours, and the hours that are not summed yet from the minutes.
-- Bounds: at most 1500 steps; minutes at most two days back, and six hours where labels are summed.
create or replace function pawl.stat_list (p_measure text, p_label text, p_since timestamptz, p_step_s integer)
  returns table (at timestamptz, count bigint, p50_us bigint, p95_us bigint)
  language plpgsql stable security definer set search_path = pawl, pg_temp
  set plan = keyed_cached
as $$
#variable_conflict use_column
declare
  v_now timestamptz := pawl.now();
  v_step interval := p_step_s * interval '1 s';
  v_since timestamptz;
  v_minutes timestamptz; -- from here on by minutes
  v_labels text[];
begin
  if (p_measure is not null and p_since between v_now - interval '370 days' and v_now
      and p_step_s between 60 and 31622400 and p_step_s % 60 = 0) is not true then
    raise exception 'since must be a time within the last 370 days, and step from 60 s to 366 days in whole minutes'
      using errcode = 'PW003';
  end if;
  v_since := date_bin(v_step, p_since, '2001-01-01 00:00:00+00');
  if (v_now - v_since) > 1500 * v_step then
    raise exception 'step must be at least % s for this time, so that there are at most 1500 steps',
      (ceil(extract(epoch from v_now - v_since) / 1500 / 60) * 60)::bigint using errcode = 'PW003';
  end if;
  if (p_step_s % 3600 <> 0
      and v_now - p_since > case when p_label is null then interval '6 hours' else interval '2 days' end) then
    raise exception 'step must be in whole hours for more than %',
      case when p_label is null then '6 hours without a domain' else '2 days' end
      using errcode = 'PW003';
  end if;
  v_minutes := case when p_step_s % 3600 = 0 then greatest(v_since, (select c.summed_until from pawl.stat_clock c))
                    else v_since end;
  if p_label is null then
    v_labels := array(
      with recursive l (label) as (
        (select s.label from pawl.stat s where s.measure = p_measure order by s.label limit 1)
        union all
        select n.label from l cross join lateral (
          select s.label from pawl.stat s where s.measure = p_measure and s.label > l.label order by s.label limit 1) n
      ), h (label) as (
        (select s.label from pawl.stat_hour s where s.measure = p_measure order by s.label limit 1)
        union all
        select n.label from h cross join lateral (
          select s.label from pawl.stat_hour s
          where s.measure = p_measure and s.label > h.label order by s.label limit 1) n
      )
      (select l.label from l limit 1000) union (select h.label from h limit 1000));
  else
    v_labels := array[p_label];
  end if;
  return query
    with part as (
      select s.at, s.count, s.buckets
      from unnest(v_labels) l (label)
      join pawl.stat_hour s on s.measure = p_measure and s.label = l.label and s.at >= v_since and s.at < v_minutes
      union all
      select s.at, s.count, s.buckets
      from unnest(v_labels) l (label)
      join pawl.stat s on s.measure = p_measure and s.label = l.label and s.at >= v_minutes
    ), stepped as (
      select date_bin(v_step, p.at, '2001-01-01 00:00:00+00') as at, sum(p.count)::bigint as count,
             pawl.stat_buckets_sum(p.buckets) as buckets
      from part p
      group by 1
    )
    select s.at, s.count, pawl.stat_quantile_us(s.buckets, 0.5), pawl.stat_quantile_us(s.buckets, 0.95)
    from stepped s
    order by s.at;
end
$$;

-- The last five whole minutes of some labels: counts, and the quantiles of times.
create or replace function pawl.stat_recent (p_labels text[])
  returns table (label text, measure text, count bigint, p50_us bigint, p95_us bigint)
  language plpgsql stable set search_path = pawl, pg_temp
  set plan = keyed_cached
  rows 100
as $$
#variable_conflict use_column
declare
  v_until timestamptz := date_trunc('minute', pawl.now());
begin
  return query
    select s.label, s.measure, s.count, pawl.stat_quantile_us(s.buckets, 0.5), pawl.stat_quantile_us(s.buckets, 0.95)
    from (
      select l.label, m.measure, sum(s.count)::bigint as count, pawl.stat_buckets_sum(s.buckets) as buckets
      from unnest(p_labels) l (label)
      cross join unnest('{sent,completed,failed,rejected,wait,run}'::text[]) m (measure)
      join pawl.stat s on s.measure = m.measure and s.label = l.label
                      and s.at >= v_until - interval '5 minutes' and s.at < v_until
      group by 1, 2) s;
end
$$;
