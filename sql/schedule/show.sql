-- show.sql - schedules as operators and clients see them.
-- Errors: QS001 a filter is not valid, QS004 there is no such schedule.

create or replace function pawl.schedule_status (p_state pawl.schedule_state)
  returns text
  language sql immutable
as $$
  select case when p_state.paused_at is not null then 'paused'
    when p_state.failing_since is not null then 'failing' else 'active' end
$$;

-- Those below the id p_before, newest first. p_status: active, paused or failing; null filters are not applied.
create or replace function pawl.schedule_list (
  p_domain text default null, p_type text default null, p_status text default null, p_name text default null,
  p_before bigint default null, p_limit integer default 100)
  returns table (id bigint, name text, domain text, type text, is_process boolean, cron text, timezone text,
    every_ms bigint,
    jitter_ms integer, missed text, overlap text, status text, next_at timestamptz, last_at timestamptz, last_id uuid,
    skipped_at timestamptz, failing_since timestamptz, error text, created_at timestamptz, changed_at timestamptz)
  language plpgsql stable security definer set search_path = pawl, pg_temp
as $$
begin
  if (p_limit between 1 and 1000) is not true then
    raise exception 'limit must be from 1 to 1000, got %', coalesce(p_limit::text, 'null') using errcode = 'QS001';
  end if;
  if p_status not in ('active', 'paused', 'failing') then
    raise exception 'status must be "active", "paused" or "failing", got "%"', left(p_status, 80)
      using errcode = 'QS001';
  end if;
  return query
    select s.id, s.name, s.domain, s.type, s.is_process, s.cron, s.timezone, s.every_ms, s.jitter_ms, s.missed,
      s.overlap,
           pawl.schedule_status(t), t.next_at, t.last_at, t.last_id, t.skipped_at, t.failing_since, t.error,
             s.created_at, s.changed_at
    from pawl.schedule s
    join pawl.schedule_state t on t.id = s.id
    where (p_before is null or s.id < p_before) and (p_domain is null or s.domain = p_domain) and (p_type is null
      or s.type = p_type)
      and (p_status is null or pawl.schedule_status(t) = p_status) and (p_name is null or s.name = p_name)
    order by s.id desc
    limit p_limit;
end
$$;

create or replace function pawl.schedule_payload (p_name text)
  returns jsonb
  language sql stable security definer set search_path = pawl, pg_temp
as $$
  select s.payload from pawl.schedule s where s.name = p_name
$$;

-- Its next times from now on, also of one that is paused: at, due_at with its jitter, and what clocks in its time
-- zone show.
create or replace function pawl.schedule_next (p_name text, p_count integer default 10)
  returns table (at timestamptz, due_at timestamptz, local text)
  language plpgsql stable security definer set search_path = pawl, pg_temp
as $$
declare
  v_schedule pawl.schedule;
  v_cron record;
begin
  if (p_count between 1 and 1000) is not true then
    raise exception 'count must be from 1 to 1000, got %', coalesce(p_count::text, 'null') using errcode = 'QS001';
  end if;
  select s.* into v_schedule from pawl.schedule s where s.name = p_name;
  if not found then
    raise exception 'schedule "%" not found', coalesce(left(p_name, 100), 'null') using errcode = 'QS004';
  end if;
  v_cron := pawl.cron_read(coalesce(v_schedule.cron, '@hourly'));
  at := pawl.now();
  for v_number in 1 .. p_count loop
    at := pawl.schedule_after(v_schedule, v_cron, at);
    exit when at is null;
    due_at := pawl.schedule_due(v_schedule, v_cron, at);
    local := to_char(at at time zone coalesce(v_schedule.timezone, 'UTC'), 'YYYY-MM-DD"T"HH24:MI:SS');
    return next;
  end loop;
end
$$;

-- How many fail, and the one that has been failing for longest.
create or replace function pawl.schedules_failing ()
  returns table (failing bigint, name text, error text)
  rows 1
  language sql stable security definer set search_path = pawl, pg_temp
as $$
  select f.failing, s.name, o.error
  from (select count(*) as failing from pawl.schedule_state t where t.failing_since is not null) f
  left join lateral (
    select t.id, t.error from pawl.schedule_state t where t.failing_since is not null order by t.failing_since,
      t.id limit 1) o on true
  left join pawl.schedule s on s.id = o.id
$$;
