-- edit.sql - create, change, pause, resume, run and delete schedules.
--
-- Each decision is idempotent and is recorded by pawl.control_add if it changed something.
-- Locks: an advisory lock of the schedule's name while it is created, then its row of schedule_state, both until the
-- commit. A firing schedule is waited for, until the session's lock_timeout.
-- Errors: QS001 a field is not valid, QS002 it exists already and differs, QS004 there is no such schedule.

-- A duration as milliseconds. Null: not given.
create or replace function pawl.schedule_ms (p_field text, p_duration interval, p_least bigint, p_most bigint)
  returns bigint
  language plpgsql immutable
as $$
declare
  v_ms numeric := extract(epoch from p_duration) * 1000;
begin
  if v_ms not between p_least and p_most or v_ms <> trunc(v_ms) then
    raise exception '% must be from % ms to % days, in whole milliseconds, got %', p_field, p_least,
      p_most / 86400000, p_duration
      using errcode = 'QS001';
  end if;
  return v_ms;
end
$$;

-- Raises unless commands of these fields may be sent.
create or replace function pawl.schedule_target_check (p_schedule pawl.schedule)
  returns void
  language plpgsql stable
as $$
begin
  perform pawl.name_check('name', p_schedule.name, 100);
  perform pawl.name_check('domain', p_schedule.domain, 63) where not p_schedule.is_process;
  perform pawl.process_domain(p_schedule.domain) where p_schedule.is_process;
  perform pawl.send_right_check('domain', p_schedule.domain) where not p_schedule.is_process;
  perform pawl.send_check(array[p_schedule.type], array[p_schedule.payload], null, null, null, null, null, null,
    null, null),
          pawl.payloads_bytes(array[p_schedule.payload], false);
  if p_schedule.is_process then
    perform pawl.state_check(jsonb_typeof(p_schedule.payload), (pawl.payloads_bytes(array[p_schedule.payload],
      false))[1]);
  elsif p_schedule.domain like 'process:%' then
    raise exception 'domain must not begin with "process:": give "%" and say that it is a process',
      substr(p_schedule.domain, 9)
      using errcode = 'QS001';
  end if;
  if p_schedule.is_process and p_schedule.overlap = 'queue' then
    raise exception 'overlap must be "allow" or "skip" for a process, got "queue"' using errcode = 'QS001';
  end if;
end
$$;

-- A schedule of these fields, checked. It has no id yet.
create or replace function pawl.schedule_read (
  p_name text, p_domain text, p_type text, p_payload jsonb, p_cron text, p_timezone text, p_every interval,
    p_is_process boolean,
  p_missed text, p_overlap text, p_jitter interval)
  returns pawl.schedule
  language plpgsql stable
as $$
declare
  c_day_ms constant bigint := 86400000;
  v_read pawl.schedule;
begin
  if (p_cron is null) = (p_every is null) then
    raise exception 'cron or every must be given, and not both' using errcode = 'QS001';
  end if;
  if p_every is not null and p_timezone is not null then
    raise exception 'timezone must be given with cron, not with every' using errcode = 'QS001';
  end if;
  if (p_missed in ('skip', 'once', 'all')) is not true then
    raise exception 'missed must be "skip", "once" or "all", got "%"', left(p_missed, 80) using errcode = 'QS001';
  end if;
  if (p_overlap in ('allow', 'skip', 'queue')) is not true then
    raise exception 'overlap must be "allow", "skip" or "queue", got "%"', left(p_overlap, 80) using errcode = 'QS001';
  end if;
  perform pawl.cron_read(p_cron) where p_cron is not null;
  v_read.name := p_name;
  v_read.domain := p_domain;
  v_read.type := p_type;
  v_read.payload := coalesce(p_payload, '{}');
  v_read.is_process := coalesce(p_is_process, false);
  v_read.cron := btrim(regexp_replace(p_cron, '\s+', ' ', 'g'));
  v_read.timezone := case when p_cron is not null then pawl.timezone_read(coalesce(p_timezone, 'UTC')) end;
  v_read.every_ms := pawl.schedule_ms('every', p_every, 1000, 366 * c_day_ms);
  v_read.jitter_ms := coalesce(pawl.schedule_ms('jitter', p_jitter, 0, c_day_ms), 0);
  v_read.missed := p_missed;
  v_read.overlap := p_overlap;
  perform pawl.schedule_target_check(v_read);
  return v_read;
end
$$;

-- The first field in which two schedules differ; null: in none.
create or replace function pawl.schedule_difference (p_one pawl.schedule, p_other pawl.schedule)
  returns text
  language sql immutable
as $$
  select f.name
  from (values ('domain', p_one.domain, p_other.domain), ('type', p_one.type, p_other.type),
               ('process', p_one.is_process::text, p_other.is_process::text),
               ('cron', p_one.cron, p_other.cron), ('timezone', p_one.timezone, p_other.timezone),
               ('every', p_one.every_ms::text, p_other.every_ms::text), ('jitter', p_one.jitter_ms::text,
                 p_other.jitter_ms::text),
               ('missed', p_one.missed, p_other.missed), ('overlap', p_one.overlap, p_other.overlap),
               ('payload', p_one.payload::text, p_other.payload::text)) f (name, one, other)
  where f.one is distinct from f.other
  limit 1
$$;

-- Monitors ask when the next schedule is due.
create or replace function pawl.schedule_notify ()
  returns void
  language sql
as $$
  select pg_notify('pawl_schedule', '')
$$;

-- Write a new one.
create or replace function pawl.schedule_insert (p_new pawl.schedule, p_now timestamptz)
  returns void
  language plpgsql
as $$
declare
  c_count_max constant integer := 10000;
  v_begin record;
begin
  if (select count(*) from (select from pawl.schedule s limit c_count_max) s) >= c_count_max then
    raise exception 'there are at most % schedules', c_count_max using errcode = 'QS001';
  end if;
  insert into pawl.schedule (name, domain, type, payload, is_process, cron, timezone, every_ms, jitter_ms, missed,
    overlap, created_at, changed_at)
  values (p_new.name, p_new.domain, p_new.type, p_new.payload, p_new.is_process, p_new.cron, p_new.timezone,
    p_new.every_ms,
          p_new.jitter_ms, p_new.missed, p_new.overlap, p_now, p_now)
  returning * into strict p_new;
  v_begin := pawl.schedule_begin(p_new, p_now);
  insert into pawl.schedule_state (id, next_at, due_at, computed_at) values (p_new.id, v_begin.next_at,
    v_begin.due_at, p_now);
end
$$;

-- Write the fields of an existing one. Its state is locked. Times that have come are not made up for; if the times
-- stay as they are, so does the next one.
create or replace function pawl.schedule_update (p_old pawl.schedule, p_new pawl.schedule, p_now timestamptz)
  returns void
  language plpgsql
as $$
declare
  v_is_same boolean := (p_old.cron, p_old.timezone, p_old.every_ms) is not distinct from (p_new.cron, p_new.timezone,
    p_new.every_ms);
begin
  update pawl.schedule s
  set domain = p_new.domain, type = p_new.type, payload = p_new.payload, is_process = p_new.is_process,
    cron = p_new.cron,
      timezone = p_new.timezone, every_ms = p_new.every_ms, jitter_ms = p_new.jitter_ms, missed = p_new.missed,
      overlap = p_new.overlap, changed_at = p_now
  where s.id = p_old.id
  returning * into strict p_new;
  update pawl.schedule_state t
  set next_at = case when v_is_same and t.next_at > p_now then t.next_at else b.next_at end,
      due_at = case when v_is_same and t.next_at > p_now then pawl.schedule_due(p_new, b.cron, t.next_at)
        else b.due_at end,
      computed_at = p_now, failing_since = null, error = null
  from (select b.next_at, b.due_at, pawl.cron_read(coalesce(p_new.cron, '@hourly')) as cron
    from pawl.schedule_begin(p_new, p_now) b) b
  where t.id = p_old.id and t.paused_at is null;
  update pawl.schedule_state t set failing_since = null, error = null where t.id = p_old.id
    and t.failing_since is not null;
end
$$;

-- Create a schedule, or replace the fields of one; p_replace false: one that exists must have the same fields.
-- p_cron, with p_timezone, which is UTC without, or p_every. Returns what was done: created, replaced or unchanged.
create or replace function pawl.schedule_create (
  p_name text, p_domain text, p_type text, p_payload jsonb default '{}', p_cron text default null,
    p_timezone text default null,
  p_every interval default null, p_is_process boolean default false, p_missed text default 'once',
    p_overlap text default 'allow',
  p_jitter interval default null, p_replace boolean default false, p_operator text default null,
    p_reason text default null)
  returns text
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
declare
  v_new pawl.schedule := pawl.schedule_read(p_name, p_domain, p_type, p_payload, p_cron, p_timezone, p_every,
    p_is_process,
                                            p_missed, p_overlap, p_jitter);
  v_old pawl.schedule;
  v_difference text;
begin
  perform pg_advisory_xact_lock(hashtextextended('pawl schedule ' || p_name, 0));
  perform from pawl.schedule_state t where t.id = (select s.id from pawl.schedule s where s.name = p_name) for update;
  select s.* into v_old from pawl.schedule s where s.name = p_name;
  if v_old.id is null then
    perform pawl.schedule_insert(v_new, pawl.now());
  else
    v_difference := pawl.schedule_difference(v_old, v_new);
    if v_difference is null then
      return 'unchanged';
    elsif p_replace is not true then
      raise exception 'schedule "%" exists already: its % differs; replace it, or delete it first', p_name, v_difference
        using errcode = 'QS002';
    end if;
    perform pawl.schedule_update(v_old, v_new, pawl.now());
  end if;
  perform pawl.control_add('schedule', p_name, case when v_old.id is null then 'create' else 'replace' end,
    p_operator, p_reason,
    jsonb_strip_nulls(to_jsonb(v_new) - '{id,salt,name,payload,created_at,changed_at}'::text[])),
      pawl.schedule_notify();
  return case when v_old.id is null then 'created' else 'replaced' end;
end
$$;

-- The state of a schedule, locked. Raises if there is none.
create or replace function pawl.schedule_lock (p_name text)
  returns pawl.schedule_state
  language plpgsql
as $$
declare
  v_state pawl.schedule_state;
begin
  select t.* into v_state from pawl.schedule_state t
  where t.id = (select s.id from pawl.schedule s where s.name = p_name) for update;
  if not found then
    raise exception 'schedule "%" not found', coalesce(left(p_name, 100), 'null') using errcode = 'QS004';
  end if;
  return v_state;
end
$$;

-- A paused schedule does not fire. True: it was not paused before.
create or replace function pawl.schedule_pause (p_name text, p_operator text default null, p_reason text default null)
  returns boolean
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
declare
  v_state pawl.schedule_state := pawl.schedule_lock(p_name);
begin
  if v_state.paused_at is not null then
    return false;
  end if;
  update pawl.schedule_state t set paused_at = pawl.now(), next_at = null, due_at = null, failing_since = null,
    error = null
  where t.id = v_state.id;
  perform pawl.control_add('schedule', p_name, 'pause', p_operator, p_reason);
  return true;
end
$$;

-- It fires again from now on; times while it was paused were not missed. True: it was paused.
create or replace function pawl.schedule_resume (p_name text, p_operator text default null, p_reason text default null)
  returns boolean
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
declare
  v_state pawl.schedule_state := pawl.schedule_lock(p_name);
  v_schedule pawl.schedule;
  v_begin record;
begin
  if v_state.paused_at is null then
    return false;
  end if;
  select s.* into strict v_schedule from pawl.schedule s where s.id = v_state.id;
  v_begin := pawl.schedule_begin(v_schedule, pawl.now());
  update pawl.schedule_state t
  set paused_at = null, next_at = v_begin.next_at, due_at = v_begin.due_at, computed_at = pawl.now()
  where t.id = v_state.id;
  perform pawl.control_add('schedule', p_name, 'resume', p_operator, p_reason), pawl.schedule_notify();
  return true;
end
$$;

-- Send its command now, also while it is paused or the last command runs; its times stay as they are. p_command_id: a
-- repeat with the same id sends nothing. Returns the id.
create or replace function pawl.schedule_run (
  p_name text, p_command_id uuid default null, p_operator text default null, p_reason text default null)
  returns uuid
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
declare
  v_state pawl.schedule_state := pawl.schedule_lock(p_name);
  v_id uuid := coalesce(p_command_id, pawl.uuid7());
  v_schedule pawl.schedule;
begin
  select s.* into strict v_schedule from pawl.schedule s where s.id = v_state.id;
  if pawl.schedule_send(v_schedule, v_id, null, p_operator) then
    update pawl.schedule_state t set last_id = v_id where t.id = v_state.id;
    perform pawl.control_add('schedule', p_name, 'run', p_operator, p_reason, jsonb_build_object('command_id', v_id));
  end if;
  return v_id;
end
$$;

-- True: there was one. Commands that it has sent stay.
create or replace function pawl.schedule_delete (p_name text, p_operator text default null, p_reason text default null)
  returns boolean
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
declare
  v_id bigint;
begin
  perform pg_advisory_xact_lock(hashtextextended('pawl schedule ' || p_name, 0));
  delete from pawl.schedule_state t where t.id = (select s.id from pawl.schedule s
    where s.name = p_name) returning t.id into v_id;
  if v_id is null then
    return false;
  end if;
  delete from pawl.schedule s where s.id = v_id;
  perform pawl.control_add('schedule', p_name, 'delete', p_operator, p_reason);
  return true;
end
$$;
