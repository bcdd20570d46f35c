-- depth.sql - how many commands each domain has where, and how long the oldest has been queued: for lists, metrics, alerts and doctor.
--
-- A count reads a bounded number of index entries, whatever the size of the tables. Up to the bound it is exact. Above, it is an estimate: the ids
-- of a domain that were read lie in a range of numbers, and the rest of the domain is taken to be as dense, but never more than the server's
-- statistics say the whole table has. An estimate is never below what was counted, and is named in `estimated`.
--
-- Bounds of one call: 20,000 entries to find which places are deep, 40,000 more for those, 10,000 leases. Lock order: none.
-- Errors: QU001 a limit or an order that does not exist.

-- Counted rows of one place, in the order of an index on numbers, as the number of all of them. p_first and p_read: the first number and the last
-- one that was counted; p_last: the last one there is.
create or replace function pawl.depth_estimate (
  p_counted bigint, p_most bigint, p_first bigint, p_read bigint, p_last bigint, p_table regclass)
  returns bigint
  language sql stable
as $$
  select case when p_counted < p_most then p_counted
              else greatest(p_counted, least(
                (p_counted * ((p_last - p_first + 1)::numeric / greatest(p_read - p_first + 1, 1)))::bigint,
                pg_catalog.pg_stat_get_live_tuples(p_table)::bigint)) end
$$;

-- The places of these domains: where they have commands, counted up to p_rows in each. Queued commands are counted by priority.
-- Plan: one step per place, by index, and then its first rows.
create or replace function pawl.depth_places (p_domains integer[], p_rows integer)
  returns table (domain_id integer, place text, priority smallint, counted bigint, first bigint, read bigint)
  language plpgsql stable set search_path = pawl, pg_temp
  set plan = keyed_cached
  rows 100
as $$
#variable_conflict use_column
begin
  return query
    select d.id, 'queued', h.priority, c.counted, c.first, c.read
    from unnest(p_domains) d (id)
    cross join lateral pawl.ready_heads(d.id, d.id) h
    cross join lateral (
      select count(*) as counted, min(r.pos) as first, max(r.pos) as read
      from (select r.pos from pawl.ready r where r.domain_id = d.id and r.priority = h.priority order by r.pos limit p_rows) r) c;
  return query
    select d.id, 'delayed', null::smallint, c.counted, c.first, c.read
    from unnest(p_domains) d (id)
    cross join lateral (
      select count(*) as counted, min(r.id) as first, max(r.id) as read
      from (select r.id from pawl.delayed r where r.domain_id = d.id order by r.id limit p_rows) r) c
    where c.counted > 0;
  return query
    select d.id, 'parked', null::smallint, c.counted, c.first, c.read
    from unnest(p_domains) d (id)
    cross join lateral (
      select count(*) as counted, min(r.id) as first, max(r.id) as read
      from (select r.id from pawl.parked r where r.domain_id = d.id order by r.id limit p_rows) r) c
    where c.counted > 0;
  return query
    select d.id, 'in_tsq', null::smallint, c.counted, c.first, c.read
    from unnest(p_domains) d (id)
    cross join lateral (
      select count(*) as counted, min(r.id) as first, max(r.id) as read
      from (select r.id from pawl.tsq r where r.domain_id = d.id order by r.id limit p_rows) r) c
    where c.counted > 0;
end
$$;

-- The last number of a place.
create or replace function pawl.depth_last (p_domain_id integer, p_place text, p_priority smallint)
  returns bigint
  language plpgsql stable set search_path = pawl, pg_temp
  set plan = keyed_cached
as $$
begin
  return case p_place
    when 'queued' then (select r.pos from pawl.ready r where r.domain_id = p_domain_id and r.priority = p_priority order by r.pos desc limit 1)
    when 'delayed' then (select r.id from pawl.delayed r where r.domain_id = p_domain_id order by r.id desc limit 1)
    when 'parked' then (select r.id from pawl.parked r where r.domain_id = p_domain_id order by r.id desc limit 1)
    else (select r.id from pawl.tsq r where r.domain_id = p_domain_id order by r.id desc limit 1)
  end;
end
$$;

-- Commands of these domains by place, in the first 10,000 leases and the first rows of the other places. Places with few rows are counted first, so
-- that those with many share the rest of the bound.
create or replace function pawl.depths (p_domains integer[])
  returns table (domain_id integer, queued bigint, delayed bigint, parked bigint, running bigint, in_tsq bigint, estimated text[])
  language plpgsql stable set search_path = pawl, pg_temp
  set plan = keyed_cached
  rows 100
as $$
#variable_conflict use_column
declare
  v_few integer := least(100, greatest(10, 5000 / greatest(cardinality(p_domains), 1)));
  v_deep integer[];
  v_most integer;
  v_leases bigint;
begin
  select array_agg(distinct p.domain_id), least(10000, 40000 / greatest(count(*), 1))
  into v_deep, v_most
  from pawl.depth_places(p_domains, v_few) p
  where p.counted = v_few;
  v_most := greatest(v_most, v_few);
  v_leases := (select count(*) from (select from pawl.lease l order by l.id limit 10000) l);
  return query
    with place as materialized (
      select p.*, v_few as most from pawl.depth_places(p_domains, v_few) p where p.domain_id <> all (coalesce(v_deep, '{}'))
      union all
      select p.*, v_most from pawl.depth_places(v_deep, v_most) p
    ), sized as materialized (
      select p.domain_id, p.place, p.counted = p.most as is_estimate,
             pawl.depth_estimate(p.counted, p.most, p.first, p.read,
               case when p.counted = p.most then pawl.depth_last(p.domain_id, p.place, p.priority) end,
               case p.place when 'queued' then 'pawl.ready' when 'in_tsq' then 'pawl.tsq' when 'parked' then 'pawl.parked'
                 else 'pawl.delayed' end::regclass) as rows
      from place p
    ), leased as materialized (
      select l.domain_id, case when v_leases < 10000 then count(*)
                               else count(*) * pawl.rows_about(v_leases, 'pawl.lease') / v_leases end as rows
      from (select l.domain_id from pawl.lease l order by l.id limit 10000) l
      group by l.domain_id
    )
    select d.id, coalesce(s.queued, 0), coalesce(s.delayed, 0), coalesce(s.parked, 0), coalesce(l.rows, 0), coalesce(s.in_tsq, 0),
           coalesce(s.estimated, '{}') || case when v_leases = 10000 then '{running}'::text[] else '{}' end
    from unnest(p_domains) with ordinality d (id, ord)
    left join (
      select s.domain_id, sum(s.rows) filter (where s.place = 'queued')::bigint as queued,
             sum(s.rows) filter (where s.place = 'delayed')::bigint as delayed,
             sum(s.rows) filter (where s.place = 'parked')::bigint as parked,
             sum(s.rows) filter (where s.place = 'in_tsq')::bigint as in_tsq,
             array_agg(distinct s.place) filter (where s.is_estimate) as estimated
      from sized s
      group by s.domain_id) s on s.domain_id = d.id
    left join leased l on l.domain_id = d.id
    order by d.ord;
end
$$;

-- Domains that have a command which has not ended, at most p_limit of each place.
-- Plan: one step per domain and place, by index; the first 10,000 leases.
create or replace function pawl.busy_domains (p_limit integer default 1000)
  returns setof integer
  language plpgsql stable set search_path = pawl, pg_temp
  set plan = keyed_cached
  rows 100
as $$
begin
  return query
    with recursive ready (id) as (
      (select r.domain_id from pawl.ready r order by r.domain_id, r.priority, r.pos limit 1)
      union all
      select n.domain_id from ready d
      cross join lateral (
        select r.domain_id from pawl.ready r where r.domain_id > d.id order by r.domain_id, r.priority, r.pos limit 1) n
    ), delayed (id) as (
      (select r.domain_id from pawl.delayed r order by r.domain_id, r.id limit 1)
      union all
      select n.domain_id from delayed d
      cross join lateral (select r.domain_id from pawl.delayed r where r.domain_id > d.id order by r.domain_id, r.id limit 1) n
    ), parked (id) as (
      (select r.domain_id from pawl.parked r order by r.domain_id, r.id limit 1)
      union all
      select n.domain_id from parked d
      cross join lateral (select r.domain_id from pawl.parked r where r.domain_id > d.id order by r.domain_id, r.id limit 1) n
    ), tsq (id) as (
      (select r.domain_id from pawl.tsq r order by r.domain_id, r.id limit 1)
      union all
      select n.domain_id from tsq d
      cross join lateral (select r.domain_id from pawl.tsq r where r.domain_id > d.id order by r.domain_id, r.id limit 1) n
    )
    (select d.id from ready d limit p_limit) union (select d.id from delayed d limit p_limit)
    union (select d.id from parked d limit p_limit) union (select d.id from tsq d limit p_limit)
    union (select l.domain_id from (select l.domain_id from pawl.lease l order by l.id limit 10000) l);
end
$$;

-- Since when the oldest queued command of a domain has been queued, as pawl.queued_since says; null: none is queued.
create or replace function pawl.domain_oldest (p_domain_id integer)
  returns timestamptz
  language sql stable set search_path = pawl, pg_temp
as $$
  select min(pawl.queued_since(h.id, h.pos)) from pawl.ready_heads(p_domain_id, p_domain_id) h
$$;

-- Domains with what they hold. p_name: only this one. Else p_order 'name': the first p_limit after p_after; 'depth': those with most queued commands, of
-- the domains that have a command which has not ended. p_bound: only domains that these patterns have (bus/bound.sql). Processes are commands of the domain process:DOMAIN, which is a row like any other.
create or replace function pawl.domain_list (
  p_name text default null, p_after text default null, p_limit integer default 100, p_order text default 'name',
  p_bound text[] default null)
  returns table (domain text, queued bigint, delayed bigint, parked bigint, running bigint, in_tsq bigint, oldest_at timestamptz,
                 oldest_s bigint, estimated text[], recent jsonb)
  language plpgsql stable security definer set search_path = pawl, pg_temp
as $$
#variable_conflict use_column
declare
  v_ids integer[];
begin
  if (p_limit between 1 and 100 and p_order in ('name', 'depth')) is not true then
    raise exception 'limit must be from 1 to 100 and order "name" or "depth", got % and %', coalesce(p_limit::text, 'null'),
      coalesce('"' || p_order || '"', 'null') using errcode = 'QU001';
  end if;
  v_ids := case
    when p_name is not null then array(select d.id from pawl.domain_name d where d.name = p_name order by d.id limit 1)
    when p_order = 'depth' then array(select b.id from pawl.busy_domains() b (id)
                                          where p_bound is null or pawl.bound_domain((select n.name from pawl.domain_name n where n.id = b.id limit 1), p_bound))
    else array(select d.id from (
                 select distinct on (d.name) d.name, d.id from pawl.domain_name d
                 where d.name > coalesce(p_after, '') and pawl.bound_domain(d.name, p_bound) order by d.name, d.id limit p_limit) d
               order by d.name)
    end;
  return query
    with recent as materialized (
      select r.label, jsonb_build_object(
               'minutes', 5,
               'sent_per_s', trim_scale(round(coalesce(sum(r.count) filter (where r.measure = 'sent'), 0) / 300, 3)),
               'ended_per_s', trim_scale(round(coalesce(sum(r.count) filter (where r.measure in ('completed', 'failed', 'rejected')), 0) / 300, 3)),
               'wait_p50_ms', max(r.p50_us) filter (where r.measure = 'wait') / 1000,
               'wait_p95_ms', max(r.p95_us) filter (where r.measure = 'wait') / 1000,
               'run_p50_ms', max(r.p50_us) filter (where r.measure = 'run') / 1000,
               'run_p95_ms', max(r.p95_us) filter (where r.measure = 'run') / 1000) as recent
      from pawl.stat_recent(array(select n.name from unnest(v_ids) i (id) join pawl.domain_name n on n.id = i.id)) r
      group by r.label
    )
    select n.name, d.queued, d.delayed, d.parked, d.running, d.in_tsq, o.at,
           greatest(extract(epoch from pawl.now() - o.at), 0)::bigint, d.estimated, r.recent
    from (
      select d.*, case when p_order = 'depth' then d.queued end as depth
      from pawl.depths(v_ids) d
      order by depth desc nulls last, case when p_order = 'depth' then d.queued + d.delayed + d.parked + d.running + d.in_tsq end desc, d.domain_id
      limit p_limit) d
    cross join lateral (select n.name from pawl.domain_name n where n.id = d.domain_id order by n.row limit 1) n
    cross join lateral (select pawl.domain_oldest(d.domain_id) as at) o
    left join recent r on r.label = n.name
    order by d.depth desc nulls last, case when p_order = 'depth' then d.delayed + d.parked + d.running + d.in_tsq end desc, n.name;
end
$$;

-- The same for metrics: the 100 domains with most commands, and in the last row, which has no name, the sums of the others. A domain called "other"
-- is among the others, because that is their label.
create or replace function pawl.backlog_domains ()
  returns table (domain text, ready bigint, delayed bigint, parked bigint, leased bigint, in_tsq bigint, oldest_s bigint)
  language sql stable security definer set search_path = pawl, pg_temp
as $$
  with ranked as (
    select d.*, n.name, row_number() over (order by d.queued + d.delayed + d.parked + d.running + d.in_tsq desc) as number
    from pawl.depths(array(select b.id from pawl.busy_domains() b (id))) d
    cross join lateral (select n.name from pawl.domain_name n where n.id = d.domain_id order by n.row limit 1) n
  )
  select case when r.number <= 100 and r.name <> 'other' then r.name end, sum(r.queued)::bigint, sum(r.delayed)::bigint, sum(r.parked)::bigint,
         sum(r.running)::bigint, sum(r.in_tsq)::bigint,
         greatest(max(extract(epoch from pawl.now() - pawl.domain_oldest(r.domain_id))), 0)::bigint
  from ranked r
  group by 1
$$;
