-- show.sql - read processes, for people: status, one with its timeline, lists. Every answer is one snapshot; nothing is locked.

-- Where a process is decides its status, so a status that ended it cannot change: an outcome is inserted once.
create or replace function pawl.process_status (p_id bigint)
  returns text
  language sql stable
as $$
  select coalesce(
    (select case when p.phase = 'compensated' then 'COMPENSATED' else o.status end from pawl.outcome o where o.id = p_id),
    (select 'WAITING_FOR_TSQ' from pawl.tsq t where t.id = p_id),
    (select 'COMPENSATING' where p.phase = 'compensating'),
    (select 'IN_PROGRESS' from pawl.lease l where l.id = p_id),
    (select p.wait from pawl.delayed d where d.id = p_id and d.due = p.wait_due), -- not if it was put off since
    'PENDING')
  from pawl.process p where p.id = p_id
$$;

-- A value as it is shown: in full, or its beginning as text if it does not fit or is nested deeper than clients may read.
create or replace function pawl.json_shown (p_value jsonb, p_fits boolean)
  returns jsonb
  language plpgsql stable
as $$
begin
  if p_fits and not jsonb_path_exists(p_value, '$.**{50}') then
    return p_value;
  end if;
  if pawl.json_is_large(p_value) then
    return pawl.json_shown(p_value);
  end if;
  return to_jsonb(left(p_value::text, 200) || '...');
end
$$;

-- Why a process failed, was canceled or is tried again; null: it did not. Its engine knows neither the operator nor the reason of a cancellation.
create or replace function pawl.process_error_shown (p_id bigint, p_status text)
  returns text
  language plpgsql stable
  set plan = keyed_cached
as $$
declare
  v_error text := coalesce((select o.error from pawl.outcome o where o.id = p_id), (select t.error from pawl.tsq t where t.id = p_id));
begin
  if v_error is null and p_status = 'WAITING_FOR_RETRY' then
    return (select s.error from pawl.process_step s where s.id = p_id and s.error is not null order by s.number desc limit 1);
  end if;
  return coalesce(
    case when v_error = 'canceled by an operator' then (
           select case when r.key = 'deadline' then pawl.deadline_error()
                       else 'canceled by ' || r.actor || coalesce(': ' || (r.payload ->> 'reason'), '') end
           from pawl.process_response r where r.id = p_id and r.kind = 'cancel' order by r.number limit 1)
         when v_error = pawl.canceled_error() then (
           select 'canceled by ' || d.operator || coalesce(': ' || d.reason, '') || ', while it ran'
           from pawl.decision_last(p_id) d where d.decision = 'cancel') end,
    v_error);
end
$$;

-- The step that a process is in, or was in last: the one that failed, if it waits for an operator or has failed; the one that it waits in, or waited in
-- after its last record; or the last one that has a record.
create or replace function pawl.process_step_shown (p_id bigint, p_status text)
  returns text
  language plpgsql stable
  set plan = keyed_cached
as $$
declare
  v_process record;
begin
  select pawl.record_text(p.step, p.item, p.undo) as step, p.waited_at,
         case when p_status in ('FAILED', 'COMPENSATED') or p_status = 'WAITING_FOR_TSQ' and p.phase = 'forward' then p.failed end as failed
  into v_process
  from pawl.process p where p.id = p_id;
  if p_status like 'WAITING_FOR_%' and p_status <> 'WAITING_FOR_TSQ' and v_process.step is not null then
    return v_process.step;
  end if;
  return coalesce(
    v_process.failed,
    (select case when v_process.waited_at >= s.ended_at then v_process.step else pawl.record_text(s.step, s.item, s.undo) end
     from pawl.process_step s
     where s.id = p_id and s.aside = 0
     order by s.number desc limit 1),
    v_process.step);
end
$$;

-- When the steps of a process began to wait or to sleep. A record says so (kind begin); where there is none, the command or child that the step
-- has sent, with which a record comes; where there is neither, the process was suspended in this step.
create or replace function pawl.process_waits (p_id bigint)
  returns table (step text, at timestamptz)
  language plpgsql stable
as $$
begin
  return query
    select w.step, w.at
    from (
      select w.step, w.at, w.kind, lag(w.kind) over step as last, lead(w.kind) over step as next,
             bool_or(w.kind < 3) over (partition by w.step) as is_known
      from (
        select pawl.record_text(s.step, s.item, s.undo, p_aside => s.aside) as step, c.created_at as at, 1 as kind
        from pawl.process_sent s
        cross join lateral (select c.created_at from pawl.command c where c.id = s.sent_id limit 1) c
        where s.id = p_id
        union all -- a list of items is recorded when an "each" begins; everything else that begins, waits
        select pawl.record_text(s.step, s.item, s.undo), s.ended_at, 2
        from pawl.process_step s where s.id = p_id and s.kind = 'begin' and s.aside = 0 and jsonb_typeof(s.result) is distinct from 'array'
        union all
        select r.met, r.waited_at, 3 from pawl.process_response r where r.id = p_id and r.waited_at is not null
        union all
        select pawl.record_text(p.step, p.item, p.undo), p.waited_at, 3 from pawl.process p
        where p.id = p_id and p.waited_at is not null and not exists (
          select from pawl.process_response r where r.id = p_id and r.waited_at = p.waited_at)) w
      window step as (partition by w.step, w.kind = 3 order by w.at, w.kind)) w
    where w.step is not null and case w.kind when 1 then (w.last = 2 or w.next = 2) is not true when 2 then true else not w.is_known end;
end
$$;

-- What happened to a process, by whom: what its command's audit has, and what follows from its responses, records, waits and what it has sent. Nothing
-- more is written for it: a response says whether it resumed the process, and a record when its step went on.
--   RESPONSE, REPLY    arrived; details.met: the step that waited
--   CANCEL_REQUESTED   an operator wants it canceled and compensated     MOVED  to another version of its definition
--   DEADLINE_PASSED    details.action: what was decided
--   WAITING            step began to wait or sleep
--   RESUMED            details.by: response, reply, cancel, deadline, time (a sleep, a timeout), retry (the next attempt of a step is due)
--   COMPENSATING       details.reason                                    COMPENSATION  of a step has ended, or failed
-- In order of (at, rank, place).
create or replace function pawl.process_events (p_id bigint)
  returns table (event text, at timestamptz, attempt smallint, actor text, details jsonb, rank integer, place text)
  language plpgsql stable
  set plan = keyed_cached
as $$
begin
  return query
    select case when a.event = 'FAILED' and exists (select from pawl.process p where p.id = p_id and p.phase = 'compensated') then 'COMPENSATED'
                else a.event end, a.at, a.attempt, a.actor, a.details, case when a.step < 2 then a.step else a.step + 10 end, a.place::text
    from pawl.audit a where a.id = p_id
    union all
    select case r.kind when 'cancel' then case when r.key = 'deadline' then 'DEADLINE_PASSED' else 'CANCEL_REQUESTED' end
                       when 'deadline' then 'DEADLINE_PASSED' when 'move' then 'MOVED' when 'reply' then 'REPLY' else 'RESPONSE' end,
           r.at, 0::smallint, r.actor,
           case when r.kind in ('cancel', 'deadline', 'move') then jsonb_strip_nulls(r.payload || jsonb_build_object('met', r.met))
                else jsonb_strip_nulls(jsonb_build_object('name', pawl.record_text(r.name, r.item, r.undo, p_aside => r.aside), 'key', r.key, 'met', r.met)) end,
           2, r.number::text
    from pawl.process_response r where r.id = p_id
    union all
    select 'RESUMED', r.at, 0::smallint, null, jsonb_build_object('step', r.met, 'by', case when r.key = 'deadline' and r.kind in ('cancel', 'deadline') then 'deadline'
             when r.kind in ('cancel', 'reply') then r.kind else 'response' end), 3, r.number::text
    from pawl.process_response r where r.id = p_id and r.resumed
    union all
    select 'WAITING', w.at, 0::smallint, null, jsonb_build_object('step', w.step), 4, w.step from pawl.process_waits(p_id) w
    union all
    select 'COMPENSATING', p.compensating_at, 0::smallint, null, jsonb_strip_nulls(jsonb_build_object('reason', p.reason)), 5, ''
    from pawl.process p where p.id = p_id and p.compensating_at is not null
    union all
    select w.event, w.at, w.attempt, null, w.details, w.rank, n.name
    from pawl.process_step s
    cross join lateral (select pawl.record_text(s.step, s.item, s.undo, s.kind, s.aside) as name) n
    cross join lateral (
      select 'RESUMED' as event, s.ended_at as at, 0::smallint as attempt, jsonb_build_object('step', n.name, 'by', 'time') as details, 4 as rank
      -- A wait that has a result was not ended by time, also if it was complete before the process was suspended.
      where s.aside = 0 and coalesce(s.result, 'null') = 'null' and s.response is null and exists (
          select from pawl.process_step b
          where b.id = s.id and b.step = s.step and b.item = s.item and b.undo = s.undo and b.kind = 'begin' and b.aside = 0 and b.attempt = 1
            and jsonb_typeof(b.result) is distinct from 'array' and b.ended_at <= s.ended_at)
        and not exists (select from pawl.process_sent x where x.id = s.id and x.step = s.step and x.item = s.item and x.undo = s.undo)
        and not exists (select from pawl.process_response r where r.id = s.id and r.met = n.name and r.resumed and r.at <= s.ended_at)
      union all
      select 'RESUMED', s.started_at, s.attempt, jsonb_build_object('step', n.name, 'by', 'retry'), 4
      where s.attempt > 1 and s.aside = 0 and exists (
        select from pawl.process_step b
        where b.id = s.id and b.step = s.step and b.item = s.item and b.undo = s.undo and b.kind = 'step' and b.aside = 0 and b.attempt = s.attempt - 1
          and b.ended_at < s.started_at)
      union all
      select 'COMPENSATION', s.ended_at, s.attempt,
             jsonb_strip_nulls(jsonb_build_object('step', pawl.record_text(s.step, s.item, false, s.kind, s.aside), 'error', s.error)), 6
      where s.undo) w
    where s.id = p_id and s.kind = 'step';
end
$$;

-- Why no pod claims the processes of this type, as a sentence. Null: a file defines the type in this domain, or a program has begun one of its
-- ten oldest processes, so that it is code.
create or replace function pawl.process_type_note (p_domain text, p_type text)
  returns text
  language plpgsql stable security definer set search_path = pawl, pg_temp
as $$
declare
  c_names_max constant integer := 5;
  v_domain_id integer := pawl.domain_find(pawl.process_domain(p_domain));
  v_elsewhere text := (select min(d.domain) from pawl.process_definition d where d.type = p_type and d.domain <> p_domain);
  v_here text[];
begin
  perform pawl.name_check('type', p_type, 100, 'QP001');
  if exists (select from pawl.process_definition d where d.domain = p_domain and d.type = p_type) or exists (
    select from (
      select p.id from pawl.process p
      where p.definition_id is null and p.domain_id = v_domain_id and p.code_type = p_type order by p.id limit 10) p
    where exists (select from pawl.process_step s where s.id = p.id) or exists (select from pawl.lease l where l.id = p.id)
      or exists (select from pawl.outcome o where o.id = p.id and o.status = 'COMPLETED')) then
    return null;
  end if;
  -- Those that begin alike first: a misspelled type is among them.
  v_here := array(
    select format('"%s"', t.type) from (select distinct d.type from pawl.process_definition d where d.domain = p_domain) t
    order by left(t.type, 1) <> left(p_type, 1), t.type limit c_names_max + 1);
  return format('type "%s" has no definition in domain "%s"', p_type, p_domain)
         || case when v_here <> '{}' then ', which defines ' || array_to_string(v_here[:c_names_max], ', ')
                   || case when cardinality(v_here) > c_names_max then ', ...' else '' end else '' end
         || ': a program must run it' || coalesce('; domain "' || v_elsewhere || '" defines it', '');
end
$$;

-- Why a process that is queued is not taken, as a sentence; null: see pawl.queued_unclaimed.
create or replace function pawl.process_queued_note (p_id bigint, p_domain text)
  returns text
  language plpgsql stable
  set plan = keyed_cached
as $$
declare
  v_queued interval := pawl.queued_unclaimed(p_id);
begin
  if v_queued is null then
    return null;
  end if;
  return format('it has been queued for %s s, and no worker has a process of domain "%s": does %s run?', extract(epoch from v_queued)::bigint, p_domain,
                case when (select p.definition_id is null from pawl.process p where p.id = p_id) then 'its program' else 'a pod with the role worker' end);
end
$$;

-- What an activation that was put off waits for, as a sentence; null: it was not, or no transaction has the process locked now.
create or replace function pawl.process_lock_note (p_id bigint)
  returns text
  language plpgsql stable
  set plan = keyed_cached
as $$
begin
  return (
    select 'another transaction that has the process locked'
    from pawl.process p
    where p.id = p_id and p.wait is null and exists (select from pawl.delayed d where d.id = p_id)
      and exists (select from pg_locks l where l.locktype = 'transactionid' and l.granted and l.transactionid = p.xmax));
end
$$;

-- The attempt of a step that a process waits for, as people read it: "attempt 2 of 5 of step charge". In code only the program knows how many there are.
create or replace function pawl.process_attempt_shown (p_id bigint)
  returns text
  language plpgsql stable
  set plan = keyed_cached
as $$
begin
  return (
    select format('attempt %s%s of step %s',
             1 + (select count(*) from pawl.process_step s
                  where s.id = p.id and s.step = p.step and s.item = p.item and s.undo = p.undo and s.kind = 'step' and s.aside = 0
                    and s.error is not null and s.is_reset is not true),
             ' of ' || (select case when p.undo then d.undo_attempts else d.attempts end from pawl.process_definition_step d
                        where d.definition_id = p.definition_id and d.name = p.step),
             pawl.record_text(p.step, p.item, p.undo))
    from pawl.process p where p.id = p_id and p.wait = 'WAITING_FOR_RETRY' and p.step is not null);
end
$$;

-- One process as JSON, with its steps, responses and what it waits for; null: unknown. Of results and of payloads the newest 4 MiB are
-- shown in full.
create or replace function pawl.process_show (p_process_id uuid, p_domain text default null)
  returns jsonb
  language sql stable security definer set search_path = pawl, pg_temp
as $$
  select jsonb_build_object(
    'process_id', c.command_id, 'domain', substr(n.name, 9), 'type', c.type, 'version', d.version, 'status', pawl.process_status(p.id),
    'life', p.life,
    'state', pawl.json_shown(p.state, true), 'state_version', p.version,
    'step', pawl.process_step_shown(p.id, pawl.process_status(p.id)), 'created_at', pawl.iso(c.created_at),
    'ended_at', pawl.iso(o.ended_at), 'result', pawl.json_shown(o.result, true), 'error', pawl.process_error_shown(p.id, pawl.process_status(p.id)), 'deadline', pawl.iso(p.deadline),
    'on_deadline', case when p.deadline is not null then coalesce(p.deadline_action, 'troubleshoot') end,
    'waits_for', case when w.id is not null then pawl.waits_shown(p.waits) end, -- null: only a response resumes it; its row is due in ten years
    'condition', case when w.id is not null and p.waits @> '[{"kind": "any"}]' then
      (select f.until from pawl.process_definition_step f where f.definition_id = p.definition_id and f.name = p.step) end,
    'attempt', case when w.id is not null then pawl.process_attempt_shown(p.id) end,
    'lock_note', pawl.process_lock_note(p.id),
    'continues_at', case when w.due < pawl.now() + interval '5 years' then pawl.iso(w.due) end,
    'worker', l.worker, 'lease_until', pawl.iso(l.until),
    'worker_note', case when pawl.process_status(p.id) = 'PENDING' then coalesce(
      case when p.definition_id is null then pawl.process_type_note(substr(n.name, 9), c.type) end, pawl.process_queued_note(p.id, substr(n.name, 9))) end,
    'progress', pawl.progress_get(p.id),
    'sent', coalesce((
      select jsonb_agg(jsonb_build_object('id', s.command_id, 'kind', case when s.name like 'process:%' then 'process' else 'command' end,
                         'domain', regexp_replace(s.name, '^process:', ''), 'type', s.type,
                         'status', case when s.name like 'process:%' then pawl.process_status(s.id) else pawl.command_status(s.id) end,
                         'step', s.step) order by s.id)
      from (select s.id, s.command_id, s.type, pawl.record_text(e.step, e.item, e.undo, p_aside => e.aside) as step, n.name
            from pawl.process_sent e
            join pawl.command s on s.id = e.sent_id
            cross join lateral (select n.name from pawl.domain_name n where n.id = s.domain_id limit 1) n
            where e.id = p.id and not exists (select from pawl.outcome x where x.id = e.sent_id)
            order by e.sent_id limit 100) s), '[]'),
    'steps', coalesce((
      select jsonb_agg(jsonb_build_object('name', pawl.record_text(s.step, s.item, s.undo, s.kind, s.aside), 'attempt', s.attempt, 'aside', s.aside,
                         'verdict', s.verdict, 'response', s.response, 'result', pawl.json_shown(s.result, s.bytes <= 4194304), 'error', s.error,
                         'started_at', pawl.iso(s.started_at), 'ended_at', pawl.iso(s.ended_at),
                         'took_ms', (extract(epoch from s.ended_at - s.started_at) * 1000)::bigint) order by s.number)
      from (select s.*, sum(pawl.json_bytes(s.result)) over (order by s.number desc) as bytes
            from pawl.process_step s -- without when a step began and what it was given: these records are the engine's own
            where s.id = p.id and s.kind in ('step', 'done')) s), '[]'),
    'responses', coalesce((
      select jsonb_agg(jsonb_build_object('kind', r.kind, 'name', coalesce(nullif(pawl.record_text(r.name, r.item, r.undo, p_aside => r.aside), ''), r.kind), 'key', r.key, 'payload', pawl.json_shown(r.payload, r.bytes <= 4194304), 'at', pawl.iso(r.at), 'actor', r.actor,
                         'met', r.met, 'step', case when r.to_step is not null then pawl.record_text(r.to_step, r.to_item, false) end) order by r.number)
      from (select r.*, sum(pawl.json_bytes(r.payload)) over (order by r.number desc) as bytes
            from pawl.process_response r where r.id = p.id) r), '[]'),
    'audit', coalesce((
      select jsonb_agg(jsonb_build_object('event', a.event, 'at', pawl.iso(a.at), 'attempt', a.attempt, 'actor', a.actor,
                         'details', pawl.json_shown(a.details, true)) order by a.at, a.rank, a.place)
      from (select * from pawl.process_events(p.id) a order by a.at desc, a.rank desc, a.place desc limit 10000) a), '[]'))
  from (select pawl.process_number(p_process_id, p_domain) as id offset 0) i
  join pawl.command c on c.id = i.id
  join pawl.process p on p.id = i.id
  cross join lateral (select n.name from pawl.domain_name n where n.id = c.domain_id limit 1) n
  left join pawl.process_definition d on d.id = p.definition_id
  left join pawl.outcome o on o.id = p.id
  left join pawl.tsq t on t.id = p.id
  left join pawl.delayed w on w.id = p.id
  left join pawl.lease l on l.id = p.id
$$;

-- The domains and types of processes that were started without a definition, of this domain and type; null: any. Where the type is not given, one
-- index lookup for each that there is.
create or replace function pawl.process_code_types (p_domain_id integer, p_type text)
  returns table (domain_id integer, type text)
  language plpgsql stable
  set plan = keyed_cached
as $$
#variable_conflict use_column
begin
  return query
    with recursive domain as materialized (
      select distinct n.id from pawl.domain_name n where n.name like 'process:%' and (p_domain_id is null or n.id = p_domain_id)
    ), found as (
      select d.id as domain_id, t.type
      from domain d
      cross join lateral (
        select p.code_type as type from pawl.process p
        where p.definition_id is null and p.domain_id = d.id and p.code_type >= coalesce(p_type, '')
        order by p.domain_id, p.code_type limit 1) t
      union all
      select f.domain_id, t.type
      from found f
      cross join lateral (
        select p.code_type as type from pawl.process p
        where p.definition_id is null and p.domain_id = f.domain_id and p.code_type > f.type
        order by p.domain_id, p.code_type limit 1) t
      where p_type is null
    )
    select f.domain_id, f.type from found f where p_type is null or f.type = p_type;
end
$$;

-- The ids of processes that may have this domain, type and status (null: any), below p_before, newest first. Each status is read from the table that has such
-- commands; a process that is being compensated has a partial index. Those that have completed, or have any status, are read by definition, because
-- a definition has one domain and one type, and those without one by domain and type: then at most p_batch, and the caller continues below the last one.
-- These conditions are ranges, because with "=" the primary key has the wanted order as well, and the planner may read it from its end. The caller
-- checks domain, type and status. The second column: more may follow, but so many rows were read.
create or replace function pawl.process_candidates (
  p_domain_id integer, p_domain text, p_type text, p_status text, p_before bigint, p_looks integer, p_batch integer)
  returns refcursor
  language plpgsql stable
  set plan = keyed_cached
as $$
declare
  v_ids refcursor;
begin
  case
    when p_status = 'WAITING_FOR_TSQ' and p_domain_id is null then
      open v_ids no scroll for select t.id, false from pawl.tsq t where t.id < p_before order by t.id desc;
    when p_status = 'WAITING_FOR_TSQ' then
      open v_ids no scroll for select t.id, false from pawl.tsq t where t.domain_id = p_domain_id and t.id < p_before order by t.id desc;
    when p_status = 'IN_PROGRESS' then
      open v_ids no scroll for
        select l.id, false from pawl.lease l where (p_domain_id is null or l.domain_id = p_domain_id) and l.id < p_before order by l.id desc;
    when p_status like 'WAITING_FOR_%' and p_domain_id is null then
      open v_ids no scroll for select d.id, false from pawl.delayed d where d.id < p_before order by d.id desc;
    when p_status like 'WAITING_FOR_%' then
      open v_ids no scroll for select d.id, false from pawl.delayed d where d.domain_id = p_domain_id and d.id < p_before order by d.id desc;
    when p_status = 'COMPENSATING' then
      open v_ids no scroll for select p.id, false from pawl.process p where p.phase = 'compensating' and p.id < p_before order by p.id desc;
    when p_status = 'CANCELED' and p_domain_id is null then
      open v_ids no scroll for
        select o.id, false from pawl.outcome o where o.status <> 'COMPLETED' and o.status = 'CANCELED' and o.id < p_before order by o.id desc;
    when p_status = 'CANCELED' then
      open v_ids no scroll for
        select o.id, false from pawl.outcome o
        where o.domain_id = p_domain_id and o.status <> 'COMPLETED' and o.status = 'CANCELED' and o.id < p_before order by o.id desc;
    when p_status in ('FAILED', 'COMPENSATED') and p_domain_id is null then
      open v_ids no scroll for
        select o.id, false from pawl.outcome o where o.status <> 'COMPLETED' and o.status = 'FAILED' and o.id < p_before order by o.id desc;
    when p_status in ('FAILED', 'COMPENSATED') then
      open v_ids no scroll for
        select o.id, false from pawl.outcome o
        where o.domain_id = p_domain_id and o.status <> 'COMPLETED' and o.status = 'FAILED' and o.id < p_before order by o.id desc;
    when p_status = 'PENDING' then
      open v_ids no scroll for -- without those that wait
        select i.id, i.is_last from pawl.pending_ids(p_domain_id, null, p_before, p_looks, p_looks) i
        where i.is_last or not exists (select from pawl.process p where p.id = i.id and p.wait is not null)
          or not exists (select from pawl.delayed d where d.id = i.id and d.due = (select p.wait_due from pawl.process p where p.id = i.id));
    when p_domain_id is null and p_type is null then
      open v_ids no scroll for select p.id, false from pawl.process p where p.id < p_before order by p.id desc;
    else
      open v_ids no scroll for
        select i.id, false
        from (
          select s.id
          from pawl.process_definition d
          cross join lateral (
            select p.id from pawl.process p
            where p.definition_id >= d.id and (p.definition_id, p.id) < (d.id, p_before)
            order by p.definition_id desc, p.id desc limit p_batch) s
          where (p_domain is null or d.domain = p_domain) and (p_type is null or d.type = p_type)
          union all
          select s.id
          from pawl.process_code_types(p_domain_id, p_type) t
          cross join lateral (
            select p.id from pawl.process p
            where p.definition_id is null and (p.domain_id, p.code_type) >= (t.domain_id, t.type)
              and (p.domain_id, p.code_type, p.id) < (t.domain_id, t.type, p_before)
            order by p.domain_id desc, p.code_type desc, p.id desc limit p_batch) s
          union all
          (select p.id from pawl.process p
           where p.definition_id is null and p.domain_id is null and p.id < p_before
           order by p.domain_id desc, p.code_type desc, p.id desc limit p_batch)) i
        order by i.id desc limit p_batch;
  end case;
  return v_ids;
end
$$;

-- Processes, newest first, below p_before. p_text: contained in the state as text. Reads at most p_looks rows of the table that has processes of this status;
-- `last` is the last one read, where the next page continues. When the limit of reads ends a page, its last row has only `last`: there may be more.
create or replace function pawl.process_list (
  p_domain text default null, p_type text default null, p_status text default null, p_step text default null, p_text text default null,
  p_older interval default null, p_before bigint default null, p_limit integer default 100, p_looks integer default 10000)
  returns table (id bigint, process_id uuid, domain text, type text, status text, step text, created_at timestamptz, error text, last bigint)
  language plpgsql stable security definer set search_path = pawl, pg_temp
  set plan = ordered_cached
as $$
#variable_conflict use_column
declare
  v_domain integer := (select d.id from pawl.domain_name d where d.name = 'process:' || p_domain order by d.id limit 1);
  v_ids refcursor;
  v_batch integer := 100; -- most of v_ids
  v_read integer := 0; -- of v_ids
  v_id bigint;
  v_is_last boolean;
  v_row record;
  v_looks integer := 0;
  v_rows integer := 0;
begin
  if (p_limit between 1 and 1000 and p_looks between 1 and 1000000) is not true then
    raise exception 'limit must be from 1 to 1000' using errcode = 'QP001';
  end if;
  if p_older not between interval '0' and interval '36500 days' then
    raise exception 'older must be from 0 to 36500 days, got %', p_older using errcode = 'QP001';
  end if;
  if p_text is not null and not has_function_privilege(session_user, 'pawl.process_show(uuid,text)', 'execute') then
    raise exception 'role "%" may not search states', session_user using errcode = '42501';
  end if;
  if p_domain is not null and v_domain is null then
    return;
  end if;
  v_ids := pawl.process_candidates(v_domain, p_domain, p_type, p_status, coalesce(p_before, 9223372036854775807), p_looks, v_batch);
  loop
    fetch v_ids into v_id, v_is_last;
    if not found and v_read = v_batch then
      close v_ids;
      v_batch := least(v_batch * 4, 10000);
      v_ids := pawl.process_candidates(v_domain, p_domain, p_type, p_status, last, p_looks, v_batch);
      v_read := 0;
      continue;
    end if;
    exit when not found;
    v_read := v_read + 1;
    v_looks := v_looks + 1;
    last := v_id;
    select p.id, p.step, p.state, c.command_id, c.type, c.created_at, substr(n.name, 9) as domain into v_row
    from pawl.process p
    cross join lateral (select c.command_id, c.type, c.created_at, c.domain_id from pawl.command c where c.id = p.id limit 1) c
    cross join lateral (select n.name from pawl.domain_name n where n.id = c.domain_id limit 1) n
    where p.id = v_id;
    if found and (p_domain is null or v_row.domain = p_domain) and (p_type is null or v_row.type = p_type) and (p_older is null or v_row.created_at < pawl.now() - p_older)
       and (p_text is null or position(p_text in v_row.state::text) > 0) then
      status := pawl.process_status(v_row.id);
      error := pawl.process_error_shown(v_row.id, status);
      step := case when p_status is null or status = p_status then pawl.process_step_shown(v_row.id, status) end;
      if (p_status is null or status = p_status) and (p_step is null or step = p_step) then
        id := v_row.id; process_id := v_row.command_id; domain := v_row.domain; type := v_row.type;
        created_at := v_row.created_at;
        return next;
        v_rows := v_rows + 1;
      end if;
    end if;
    exit when v_rows = p_limit;
    if v_looks = p_looks or v_is_last then
      id := null; process_id := null; domain := null; type := null; status := null; step := null; created_at := null; error := null;
      return next;
      exit;
    end if;
  end loop;
  close v_ids;
end
$$;

-- The same for a caller that is bound to domains, or whose p_bound is null: see pawl.command_page_bound.
create or replace function pawl.process_list_bound (
  p_bound text[], p_domain text default null, p_type text default null, p_status text default null, p_step text default null, p_text text default null,
  p_older interval default null, p_before bigint default null, p_limit integer default 100)
  returns table (id bigint, process_id uuid, domain text, type text, status text, step text, created_at timestamptz, error text, last bigint)
  language plpgsql stable security definer set search_path = pawl, pg_temp
  set plan = ordered_cached
  rows 100
as $$
#variable_conflict use_column
begin
  perform pawl.page_check(p_limit, 0);
  if p_bound is null then
    return query select p.* from pawl.process_list(p_domain, p_type, p_status, p_step, p_text, p_older, p_before, p_limit) p;
    return;
  end if;
  return query
    with page as materialized (
      select p.* from pawl.bound_domains(p_bound, p_domain, 'processes') b
      cross join lateral pawl.process_list(b.domain, p_type, p_status, p_step, p_text, p_older, p_before, p_limit) p
    )
    select l.*
    from page l
    where l.last >= coalesce((select max(e.last) from page e where e.id is null), l.last)
    order by l.last desc, l.id is null
    limit p_limit;
end
$$;
