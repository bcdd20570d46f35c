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
    (select p.wait from pawl.delayed d where d.id = p_id),
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
  return to_jsonb(left(p_value::text, 200) || '...');
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
    'state', pawl.json_shown(p.state, true), 'state_version', p.version, 'step', p.step, 'created_at', pawl.iso(c.created_at),
    'ended_at', pawl.iso(o.ended_at), 'result', pawl.json_shown(o.result, true), 'error', coalesce(o.error, t.error), 'deadline', pawl.iso(p.deadline),
    'waits_for', case when w.id is not null then p.waits end, -- null: only a response resumes it; its row is due in ten years
    'continues_at', case when w.due < pawl.now() + interval '5 years' then pawl.iso(w.due) end,
    'worker', l.worker,
    'steps', coalesce((
      select jsonb_agg(jsonb_build_object('name', s.name, 'attempt', s.attempt, 'result', pawl.json_shown(s.result, s.bytes <= 4194304),
                         'error', s.error,
                         'started_at', pawl.iso(s.started_at), 'ended_at', pawl.iso(s.ended_at),
                         'took_ms', (extract(epoch from s.ended_at - s.started_at) * 1000)::bigint) order by s.ended_at, s.name, s.attempt)
      from (select s.*, sum(pawl.json_bytes(s.result)) over (order by s.ended_at desc, s.name desc, s.attempt desc) as bytes
            from pawl.process_step s -- without when a step began and why it is compensated: these records are the engine's own
            where s.id = p.id and s.name <> '~' and s.name !~ ':begun[0-9]*$') s), '[]'),
    'responses', coalesce((
      select jsonb_agg(jsonb_build_object('name', r.name, 'key', r.key, 'payload', pawl.json_shown(r.payload, r.bytes <= 4194304), 'at', pawl.iso(r.at), 'actor', r.actor,
                         'met', r.met) order by r.number)
      from (select r.*, sum(pawl.json_bytes(r.payload)) over (order by r.number desc) as bytes
            from pawl.process_response r where r.id = p.id) r), '[]'),
    'audit', pawl.command_show(c.command_id, n.name) -> 'audit')
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

-- Processes, newest first, below p_before. p_text: contained in the state as text. Reads at most p_looks processes; `last` is the last one
-- read, where the next page continues. When the limit of reads ends a page, its last row has only `last`: there may be more.
create or replace function pawl.process_list (
  p_domain text default null, p_type text default null, p_status text default null, p_step text default null, p_text text default null,
  p_older interval default null, p_before bigint default null, p_limit integer default 100, p_looks integer default 10000)
  returns table (id bigint, process_id uuid, domain text, type text, status text, step text, created_at timestamptz, error text, last bigint)
  language plpgsql stable security definer set search_path = pawl, pg_temp
  set jit = off set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off
as $$
#variable_conflict use_column
declare
  v_row record;
  v_looks integer := 0;
  v_rows integer := 0;
begin
  if (p_limit between 1 and 1000 and p_looks between 1 and 1000000) is not true then
    raise exception 'limit must be from 1 to 1000' using errcode = 'QP001';
  end if;
  if p_text is not null and not has_function_privilege(session_user, 'pawl.process_show(uuid,text)', 'execute') then
    raise exception 'role "%" may not search states', session_user using errcode = '42501';
  end if;
  for v_row in
    select p.id, p.step, p.state, c.command_id, c.type, c.created_at, substr(n.name, 9) as domain
    from pawl.process p
    cross join lateral (select c.command_id, c.type, c.created_at, c.domain_id from pawl.command c where c.id = p.id limit 1) c
    cross join lateral (select n.name from pawl.domain_name n where n.id = c.domain_id limit 1) n
    where p.id < coalesce(p_before, 9223372036854775807)
    order by p.id desc
  loop
    v_looks := v_looks + 1;
    last := v_row.id;
    if (p_domain is null or v_row.domain = p_domain) and (p_type is null or v_row.type = p_type)
       and (p_step is null or v_row.step = p_step) and (p_older is null or v_row.created_at < pawl.now() - p_older)
       and (p_text is null or position(p_text in v_row.state::text) > 0) then
      status := pawl.process_status(v_row.id);
      if p_status is null or status = p_status then
        id := v_row.id; process_id := v_row.command_id; domain := v_row.domain; type := v_row.type; step := v_row.step;
        created_at := v_row.created_at;
        error := coalesce((select o.error from pawl.outcome o where o.id = v_row.id), (select t.error from pawl.tsq t where t.id = v_row.id));
        return next;
        v_rows := v_rows + 1;
      end if;
    end if;
    exit when v_rows = p_limit;
    if v_looks = p_looks then
      id := null; process_id := null; domain := null; type := null; status := null; step := null; created_at := null; error := null;
      return next;
      exit;
    end if;
  end loop;
end
$$;
