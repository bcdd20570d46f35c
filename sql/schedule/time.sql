-- time.sql - the times of a schedule: the next one, its jitter, and which of those that have come are fired.
--
-- Every N counts from 1970-01-01 00:00 UTC, so its times depend on N alone.
-- Errors: none of its own; 22023 a time zone that the server no longer knows.

-- The first time after p_after; null: none within 50 years. p_cron: the schedule's expression as pawl.cron_read has it;
-- that of every N does not matter.
create or replace function pawl.schedule_after (p_schedule pawl.schedule, p_cron record, p_after timestamptz)
  returns timestamptz
  language plpgsql stable
as $$
begin
  if p_schedule.every_ms is null then
    return pawl.cron_next(p_cron, p_schedule.timezone, p_after);
  end if;
  return timestamptz 'epoch'
    + (pawl.micros(p_after) / 1000 / p_schedule.every_ms + 1) * p_schedule.every_ms * interval '1 ms';
end
$$;

-- The id of the command of this time (UUID version 8). A sender that could foresee it could send another command
-- under it, so it depends on the salt.
create or replace function pawl.schedule_command_id (p_salt uuid, p_at timestamptz)
  returns uuid
  language sql immutable
as $$
  select encode(set_byte(set_byte(h.bytes, 6, get_byte(h.bytes, 6) & 15 | 128), 8, get_byte(h.bytes, 8) & 63 | 128),
    'hex')::uuid
  from (select substring(sha256(convert_to(p_salt || '@' || pawl.micros(p_at), 'UTF8')) from 1 for 16)) h (bytes)
$$;

-- When the time p_at is due: then, or later by a part of the jitter that follows from the schedule and the time, and
-- before the next time.
create or replace function pawl.schedule_due (p_schedule pawl.schedule, p_cron record, p_at timestamptz)
  returns timestamptz
  language plpgsql stable
as $$
declare
  v_hash bigint;
  v_gap_ms bigint;
begin
  if p_schedule.jitter_ms = 0 then
    return p_at;
  end if;
  v_gap_ms := (pawl.micros(pawl.schedule_after(p_schedule, p_cron, p_at)) - pawl.micros(p_at)) / 1000;
  v_hash := ('x' || left(pawl.schedule_command_id(p_schedule.salt, p_at)::text, 8))::bit(32)::bigint;
  return p_at + v_hash % least(p_schedule.jitter_ms, v_gap_ms) * interval '1 ms';
end
$$;

-- The last time from p_first on that is not after p_now. p_first is one, and has come.
create or replace function pawl.schedule_newest (
  p_schedule pawl.schedule, p_cron record, p_first timestamptz, p_now timestamptz)
  returns timestamptz
  language plpgsql stable
as $$
declare
  v_newest timestamptz := p_first;
  v_end timestamptz := p_now; -- no time is in (v_end, p_now]
  v_at timestamptz;
begin
  if p_schedule.every_ms is not null then
    return greatest(p_first, pawl.schedule_after(p_schedule, p_cron, p_now - p_schedule.every_ms * interval '1 ms'));
  end if;
  while v_end - v_newest > interval '1 s' loop -- halves what is left
    v_at := pawl.schedule_after(p_schedule, p_cron, v_newest + (v_end - v_newest) / 2);
    if v_at <= p_now then
      v_newest := v_at;
    else
      v_end := v_newest + (v_end - v_newest) / 2;
    end if;
  end loop;
  return v_newest;
end
$$;

-- The last times from p_first to p_newest, p_count at most, in order. Both are times of the schedule.
create or replace function pawl.schedule_last_times (
  p_schedule pawl.schedule, p_cron record, p_first timestamptz, p_newest timestamptz, p_count integer)
  returns timestamptz[]
  language plpgsql stable
as $$
declare
  v_span interval := p_count * coalesce(p_schedule.every_ms, 60000) * interval '1 ms';
  v_begin timestamptz;
  v_at timestamptz;
  v_times timestamptz[];
begin
  loop -- twice as far back each time
    v_begin := greatest(p_first, p_newest - v_span);
    v_at := case when v_begin = p_first then p_first else pawl.schedule_after(p_schedule, p_cron, v_begin) end;
    v_times := '{}';
    while v_at <= p_newest loop
      v_times := v_times || v_at;
      v_at := pawl.schedule_after(p_schedule, p_cron, v_at);
    end loop;
    exit when cardinality(v_times) >= p_count or v_begin = p_first;
    v_span := v_span * 2;
  end loop;
  return v_times[greatest(cardinality(v_times) - p_count, 0) + 1:];
end
$$;

-- Which times are fired now, in order, when p_first is due: as the schedule says about missed times. next_at: the one
-- that follows, null: none within 50 years; due_at: when that is due.
create or replace function pawl.schedule_take (
  p_schedule pawl.schedule, p_first timestamptz, p_now timestamptz,
  out times timestamptz[], out next_at timestamptz, out due_at timestamptz)
  language plpgsql stable
as $$
declare
  c_late_max constant interval := '1 min'; -- what is later was missed
  c_times_max constant integer := 100;
  v_cron record := pawl.cron_read(coalesce(p_schedule.cron, '@hourly'));
  v_newest timestamptz := p_first;
begin
  next_at := pawl.schedule_after(p_schedule, v_cron, p_first);
  due_at := pawl.schedule_due(p_schedule, v_cron, next_at);
  if due_at <= p_now then
    v_newest := pawl.schedule_newest(p_schedule, v_cron, p_first, p_now);
    next_at := pawl.schedule_after(p_schedule, v_cron, v_newest);
    due_at := pawl.schedule_due(p_schedule, v_cron, next_at);
  end if;
  times := case when p_schedule.missed = 'all' and v_newest > p_first
                  then pawl.schedule_last_times(p_schedule, v_cron, p_first, v_newest, c_times_max)
                when p_schedule.missed = 'skip' and p_now - v_newest > c_late_max then '{}'
                else array[v_newest] end;
end
$$;

-- The first time after p_after, and when it is due.
create or replace function pawl.schedule_begin (
  p_schedule pawl.schedule, p_after timestamptz, out next_at timestamptz, out due_at timestamptz)
  language plpgsql stable
as $$
declare
  v_cron record := pawl.cron_read(coalesce(p_schedule.cron, '@hourly'));
begin
  next_at := pawl.schedule_after(p_schedule, v_cron, p_after);
  due_at := pawl.schedule_due(p_schedule, v_cron, next_at);
end
$$;
