-- fire.sql - schedules that are due send their commands.
--
-- Invariants
--   1. A time fires once: the send and the advance to the next time are one transaction under the lock of the
--      schedule's row, and the command's id follows from the schedule and the time, so a repeat after the clock was
--      set back sends nothing.
--   2. A schedule that cannot fire holds up no other. Its error is recorded, and it is tried again: after 30 s, then
--      after as long as it has been failing, up to 10 minutes. A failure of the server or of another transaction ends
--      the call.
-- Lock order: rows of schedule_state, skipping what is locked; then those of pawl.send, each with a bound.
-- Errors: QS001 a limit is out of range.

-- The queue on the bus of what a schedule sends.
create or replace function pawl.schedule_queue (p_schedule pawl.schedule)
  returns text
  language sql immutable
as $$
  select case when p_schedule.is_process then 'process:' || p_schedule.domain else p_schedule.domain end
$$;

-- Is this command of the schedule queued or running? One in troubleshooting is not: it waits for an operator.
create or replace function pawl.schedule_is_busy (p_schedule pawl.schedule, p_command_id uuid)
  returns boolean
  language plpgsql stable
  set plan = keyed_cached
as $$
begin
  return exists (
    select from pawl.command c
    where c.command_id = p_command_id and c.domain_id = pawl.domain_find(pawl.schedule_queue(p_schedule))
      and pawl.command_status(c.id) in ('PENDING', 'IN_PROGRESS'));
end
$$;

-- As the correlation id of a command has it.
create or replace function pawl.schedule_time_text (p_at timestamptz)
  returns text
  language sql immutable
as $$
  select to_char(p_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
$$;

-- Send the command of this time, or, without one, of a run by an operator. True: it is new. p_actor: who sends it.
create or replace function pawl.schedule_send (p_schedule pawl.schedule, p_command_id uuid, p_at timestamptz,
  p_actor text)
  returns boolean
  language plpgsql
as $$
declare
  v_sent record;
begin
  select s.is_new, s.refusal into strict v_sent
  from pawl.send_items(
    false, pawl.schedule_queue(p_schedule), array[p_schedule.type], array[p_schedule.payload], array[p_command_id],
      null, null,
    case when p_schedule.is_process then array[10] end, null,
    array[concat_ws('@', 'schedule:' || p_schedule.name, pawl.schedule_time_text(p_at))], null, p_actor,
    case when p_schedule.overlap = 'queue' then array['schedule:' || p_schedule.name] end) s;
  if v_sent.refusal is not null and p_at is null then
    raise exception 'command % exists already: %', p_command_id, v_sent.refusal using errcode = 'QS002';
  end if; -- under the id of a time only the schedule sends, so a refusal means that it was edited since
  if v_sent.is_new then
    perform pawl.wake_later(array[pawl.domain_find(pawl.schedule_queue(p_schedule))]);
  end if;
  return v_sent.is_new;
end
$$;

-- Fire the times that are taken, and advance to the next one. Returns how many commands were sent.
create or replace function pawl.schedule_fire_one (p_state pawl.schedule_state, p_now timestamptz)
  returns integer
  language plpgsql
as $$
declare
  v_schedule pawl.schedule;
  v_take record;
  v_at timestamptz;
  v_id uuid;
  v_sent integer := 0;
begin
  select s.* into strict v_schedule from pawl.schedule s where s.id = p_state.id;
  v_take := pawl.schedule_take(v_schedule, p_state.next_at, p_now);
  if v_take.next_at is null then
    raise exception 'cron "%" does not fire again', v_schedule.cron using errcode = 'QS001';
  end if;
  foreach v_at in array v_take.times loop
    v_id := pawl.schedule_command_id(v_schedule.salt, v_at);
    if v_schedule.overlap = 'skip' and p_state.last_id <> v_id and pawl.schedule_is_busy(v_schedule,
      p_state.last_id) then
      p_state.skipped_at := v_at;
    else
      v_sent := v_sent + pawl.schedule_send(v_schedule, v_id, v_at, 'schedule')::integer;
      p_state.last_at := v_at;
      p_state.last_id := v_id;
    end if;
  end loop;
  update pawl.schedule_state s
  set next_at = v_take.next_at, due_at = v_take.due_at, computed_at = p_now, last_at = p_state.last_at,
      last_id = p_state.last_id, skipped_at = p_state.skipped_at, failing_since = null, error = null
  where s.id = p_state.id;
  return v_sent;
end
$$;

-- The same, but a failure of the schedule is recorded, and nothing was sent. Null: it failed.
create or replace function pawl.schedule_fire_tried (p_state pawl.schedule_state, p_now timestamptz)
  returns integer
  language plpgsql
as $$
declare
  v_since timestamptz := least(coalesce(p_state.failing_since, p_now), p_now);
begin
  return pawl.schedule_fire_one(p_state, p_now);
exception when others then
  if pawl.is_transient(sqlstate) then
    raise;
  end if;
  update pawl.schedule_state s
  set failing_since = v_since, error = left(sqlerrm, 1000), computed_at = p_now,
      due_at = p_now + least(greatest(p_now - v_since, interval '30 s'), interval '10 min')
  where s.id = p_state.id;
  return null;
end
$$;

-- The clock was set back: what was computed before that would come as much too late as the clock was ahead. Begins
-- those schedules, p_limit at most, from now on.
create or replace function pawl.schedules_reset (p_limit integer, p_now timestamptz)
  returns integer
  language plpgsql
  set plan = ordered
as $$
declare
  v_state record;
  v_count integer := 0;
begin
  for v_state in
    select t.id, s as schedule from (
      select t.id from pawl.schedule_state t
      where t.due_at is not null and t.computed_at > p_now + interval '1 min'
      order by t.computed_at limit p_limit for update skip locked) t
    join pawl.schedule s on s.id = t.id
  loop
    begin
      update pawl.schedule_state t set next_at = b.next_at, due_at = b.due_at, computed_at = p_now
      from pawl.schedule_begin(v_state.schedule, p_now) b where t.id = v_state.id;
    exception when others then
      if pawl.is_transient(sqlstate) then
        raise;
      end if;
      update pawl.schedule_state t
      set next_at = p_now, due_at = p_now + interval '30 s', computed_at = p_now, failing_since = p_now,
        error = left(sqlerrm, 1000)
      where t.id = v_state.id;
    end;
    v_count := v_count + 1;
  end loop;
  return v_count;
end
$$;

-- When the next schedule is due, in milliseconds from now: from 0 to p_most_ms.
create or replace function pawl.schedules_due_ms (p_most_ms integer)
  returns integer
  language plpgsql stable security definer set search_path = pawl, pg_temp
  set plan = ordered_cached
as $$
declare
  v_now timestamptz := pawl.now();
  v_due timestamptz;
begin
  if (select max(s.computed_at) from pawl.schedule_state s where s.due_at is not null) > v_now + interval '1 min' then
    return 0;
  end if;
  v_due := (select min(s.due_at) from pawl.schedule_state s where s.due_at is not null);
  return case when v_due is null then p_most_ms
              else least(greatest(ceil(extract(epoch from v_due - v_now) * 1000), 0), p_most_ms)::integer end;
end
$$;

-- Fire up to p_limit schedules that are due, the longest due first, until some 500 commands are sent. fired:
-- schedules that were due; sent: commands and processes; failed: schedules; next_ms: when to call again, 0: there is
-- more to do.
create or replace function pawl.schedules_fire (
  p_limit integer, p_most_ms integer, out fired integer, out sent integer, out failed integer, out next_ms integer)
  language plpgsql security definer set search_path = pawl, pg_temp
  set lock_timeout = '2s'
  set plan = ordered
as $$
declare
  c_sent_max constant integer := 500;
  v_now timestamptz := pawl.now();
  v_state pawl.schedule_state;
  v_sent integer;
begin
  if (p_limit between 1 and 1000 and p_most_ms between 0 and 86400000) is not true then
    raise exception 'limit must be from 1 to 1000 and most_ms from 0 to 86400000' using errcode = 'QS001';
  end if;
  fired := 0;
  sent := 0;
  failed := 0;
  perform pawl.schedules_reset(p_limit, v_now);
  for v_state in
    select s.* from pawl.schedule_state s where s.due_at <= v_now order by s.due_at limit p_limit for update skip locked
  loop
    v_sent := pawl.schedule_fire_tried(v_state, v_now);
    fired := fired + 1;
    sent := sent + coalesce(v_sent, 0);
    failed := failed + (v_sent is null)::integer;
    exit when sent >= c_sent_max;
  end loop;
  next_ms := pawl.schedules_due_ms(p_most_ms);
end
$$;
