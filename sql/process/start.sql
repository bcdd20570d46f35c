-- start.sql - start processes, in the caller's own transaction.
--
-- A process is a command in a domain "process:...": to start one is to send it. Its id is unique in its domain, the same start again changes
-- nothing and reports the status of the first one, and another type or state is a refusal that names the difference. Batches, replies
-- and twins are those of commands (bus/send.sql).
-- Lock order: as pawl.send_items.
-- Errors: QP001 the domain is malformed. QP007 children are nested too deep. QU001 a state is no object, or too large.

-- The domain of the bus in which the activations of a domain's processes are queued.
create or replace function pawl.process_domain (p_domain text)
  returns text
  language plpgsql immutable
as $$
begin
  if not pawl.is_name(p_domain, 54) then
    perform pawl.name_check('domain', p_domain, 54, 'QP001');
  end if;
  if p_domain like 'process:%' then
    raise exception 'domain must not begin with "process:", which is the name of its queue on the bus: give "%"', substr(p_domain, 9)
      using errcode = 'QP001';
  end if;
  return 'process:' || p_domain;
end
$$;

-- Raises unless a state may be one. p_bytes: as pawl.payloads_bytes measures it.
create or replace function pawl.state_check (p_type text, p_bytes integer)
  returns void
  language plpgsql immutable
as $$
declare
  c_bytes_max constant integer := 1024 * 1024;
begin
  if p_type is distinct from 'object' then
    raise exception 'state must be a JSON object' using errcode = 'QU001';
  end if;
  if p_bytes > c_bytes_max then
    raise exception 'state must have at most % bytes as text', c_bytes_max using errcode = 'QU001';
  end if;
end
$$;

-- When a process that was just sent is due: now, or after its delay. A deadline is measured from then.
create or replace function pawl.process_due (p_id bigint)
  returns timestamptz
  language plpgsql stable
as $$
begin
  return coalesce((select d.due from pawl.delayed d where d.id = p_id),
                  (select c.due_at from pawl.command c where c.id = p_id), pawl.now());
end
$$;

-- The processes of commands that were just sent, by pawl.send_items. A definition's deadline is measured from when the
-- process is due; pawl.process_deadlines_set has that of the start.
create or replace function pawl.process_create (p_domain text, p_ids bigint[])
  returns void
  language plpgsql security definer set search_path = pawl, pg_temp
  set plan = ordered_cached
as $$
declare
  c_depth_max constant integer := 100;
  v_domain text := substr(p_domain, 9);
begin
  perform pawl.process_domain(v_domain);
  insert into pawl.process (id, domain_id, code_type, definition_id, state, deadline, deadline_due, deadline_action, depth)
  select c.id, c.domain_id, case when d.id is null then c.type end, d.id, c.payload, d.deadline, d.deadline, d.deadline_action,
         case when c.reply_to like 'response:%' then coalesce(
           (select p.depth + 1 from pawl.process p where p.id = pawl.process_target_id(c.reply_to)), 1) else 0 end
  from unnest(p_ids) i (id)
  cross join lateral (select c.id, c.domain_id, c.type, c.payload, c.reply_to from pawl.command c where c.id = i.id limit 1) c
  left join lateral (
    select d.id,
           case when d.deadline_ms is not null then pawl.process_due(c.id) + d.deadline_ms * interval '1 ms' end as deadline,
           case when d.deadline_ms is not null then d.deadline_action end as deadline_action
    from pawl.process_definition d
    where d.domain = v_domain and d.type = c.type order by d.version desc limit 1) d on true;
  perform pawl.state_check(jsonb_typeof(c.payload), c.payload_bytes) from pawl.command c where c.id = any (p_ids);
  if exists (select from pawl.process p where p.id = any (p_ids) and p.depth > c_depth_max) then
    raise exception 'processes that start processes must be nested at most % levels deep', c_depth_max using errcode = 'QP007';
  end if;
end
$$;

-- The newest definition for a process that was started before its type was defined. Only the worker that has its lease may say so, and only while
-- no step is recorded and its first life has not ended: otherwise it is code. A definition's deadline starts now, unless the start gave one. Null: there is none. -1: another
-- transaction has the process locked, and for how long is not known, so that it is not waited for. The same call again, because its answer was lost,
-- returns the same.
create or replace function pawl.process_bind (p_id bigint, p_token bigint)
  returns integer
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
#variable_conflict use_column
begin
  if exists (
    select from pawl.process p join pawl.lease l on l.id = p.id and l.token = p_token
    where p.id = p_id and p.definition_id is null and p.life = 1 and not exists (select from pawl.process_step s where s.id = p_id)) then
    perform from pawl.process p where p.id = p_id for no key update skip locked;
    if not found then
      return -1;
    end if;
    -- The first call may have committed meanwhile.
    update pawl.process p
    set definition_id = d.id, deadline = coalesce(p.deadline, n.deadline),
        deadline_due = case when p.deadline is null then n.deadline else p.deadline_due end,
        deadline_action = case when p.deadline_given is null then d.deadline_action
                               else coalesce(p.deadline_action, d.deadline_action) end
    from pawl.command c
    join pawl.lease l on l.id = c.id and l.token = p_token
    cross join lateral (select n.name from pawl.domain_name n where n.id = c.domain_id limit 1) m
    join pawl.process_definition d on d.id = pawl.process_definition_newest(substr(m.name, 9), c.type)
    cross join lateral (select pawl.now() + d.deadline_ms * interval '1 ms' as deadline) n
    where p.id = p_id and c.id = p_id and p.definition_id is null and p.life = 1 and not exists (select from pawl.process_step s where s.id = p_id);
  end if;
  return (select p.definition_id from pawl.process p join pawl.lease l on l.id = p.id and l.token = p_token where p.id = p_id);
end
$$;

-- What a start gives, as pawl.send_items takes it. Null: none.
create or replace function pawl.start_read (
  p_process_id uuid, p_key text, p_delay interval, p_priority integer, p_deadline interval, p_deadline_at timestamptz,
  p_on_deadline text, out id uuid, out delay_ms bigint, out priority integer, out deadline text)
  language plpgsql stable
as $$
declare
  c_delay_max constant bigint := 3650::bigint * 86400000;
  v_delay_ms numeric := extract(epoch from p_delay) * 1000; -- what is compared is what is used: intervals compare months as 30 days
begin
  id := pawl.key_or_id(p_key, p_process_id, 'process_id');
  if v_delay_ms not between 0 and c_delay_max then -- before it becomes a bigint
    raise exception 'delay must be from 0 to 3650 days, got %', p_delay using errcode = 'QU001';
  end if;
  if p_priority not between 0 and 9 then
    raise exception 'priority must be from 0 to 9, got %', p_priority using errcode = 'QU001';
  end if;
  delay_ms := v_delay_ms;
  priority := p_priority;
  deadline := pawl.deadline_write(p_deadline, p_deadline_at, p_on_deadline);
end
$$;

-- One process, in the application's own transaction. Returns its id; a refusal is raised (QU002). A type that nothing runs is stored, with a
-- notice: a program may come. max_attempts 10: so
-- many workers may die of one activation before it goes to troubleshooting; failures of steps do not count here.
-- p_delay: it is due after this time. p_priority: 0 to 9, 9 is claimed first; 4 when absent. p_deadline: from when it is
-- due, or p_deadline_at, in place of the definition's; p_on_deadline: troubleshoot, compensate or fail, what happens then
-- (deadline.sql). p_key: a text in place of the id, which counts in all domains (bus/send_key.sql).
create or replace function pawl.start (
  p_type text, p_state jsonb default '{}', p_process_id uuid default null, p_domain text default 'process', p_reply_to text default null,
  p_deadline interval default null, p_on_deadline text default null, p_deadline_at timestamptz default null,
  p_key text default null, p_delay interval default null, p_priority integer default null)
  returns uuid
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
declare
  v_given record := pawl.start_read(p_process_id, p_key, p_delay, p_priority, p_deadline, p_deadline_at, p_on_deadline);
  v_sent record;
  v_note text;
begin
  select * into strict v_sent
  from pawl.send_items(
    false, pawl.process_domain(p_domain), array[p_type], array[coalesce(p_state, '{}')],
    array[v_given.id], case when v_given.delay_ms > 0 then array[v_given.delay_ms] end, array[v_given.priority],
    array[10], case when p_reply_to is not null then array[p_reply_to] end, null, null, null,
    p_attached => case when v_given.deadline is not null then array[v_given.deadline] end,
    p_keyed => case when p_key is not null then array[true] end);
  if v_sent.refusal is not null then
    raise exception 'process % exists already: %', v_sent.command_id, regexp_replace(v_sent.refusal, '^payload ', 'state ') using errcode = 'QU002';
  end if;
  v_note := pawl.process_type_note(p_domain, p_type);
  if v_note is not null then
    raise notice '%', v_note using hint = 'pawl process define FILE defines a type';
  end if;
  return v_sent.command_id;
end
$$;

-- The same as pawl.start_read, for one of many. refusal: why it is not started, also by what pawl.send_items would raise
-- for all of them.
create or replace function pawl.start_item (
  p_type text, p_state jsonb, p_process_id uuid, p_key text, p_delay interval, p_priority integer, p_deadline interval,
  p_deadline_at timestamptz, p_on_deadline text, out id uuid, out delay_ms bigint, out priority integer, out deadline text, out refusal text)
  language plpgsql stable
as $$
begin
  perform pawl.name_check('type', p_type, 100, 'QU001');
  perform pawl.state_check(jsonb_typeof(p_state), (pawl.payloads_bytes(array[p_state], false))[1]);
  select g.id, g.delay_ms, g.priority, g.deadline into strict id, delay_ms, priority, deadline
  from pawl.start_read(p_process_id, p_key, p_delay, p_priority, p_deadline, p_deadline_at, p_on_deadline) g;
exception when sqlstate 'QU001' or sqlstate 'QP001' then
  refusal := sqlerrm;
end
$$;

-- Many processes of one domain, in the application's own transaction: up to 10000, 500 of them by keys, because each key
-- is a lock. One row per item, in order; NULL arrays and NULL elements mean the default. refusal: why this one is not
-- started; it does not affect the others. status: as pawl.send_items has it; null: refused before.
create or replace function pawl.start_many (
  p_types text[], p_states jsonb[] default null, p_process_ids uuid[] default null, p_domain text default 'process',
  p_keys text[] default null, p_delays interval[] default null, p_priorities integer[] default null,
  p_deadlines interval[] default null, p_on_deadline text[] default null, p_deadlines_at timestamptz[] default null)
  returns table (ord integer, process_id uuid, is_new boolean, status text, refusal text)
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
declare
  c_count_max constant integer := 10000;
  c_keys_max constant integer := 500;
  v_count integer := coalesce(cardinality(p_types), 0);
  v_domain text := pawl.process_domain(p_domain);
  v_all record;
  v_good record;
begin
  if v_count not between 1 and c_count_max then
    raise exception 'types must have 1 to % elements, got %', c_count_max, v_count using errcode = 'QU001';
  end if;
  perform pawl.array_check('types', p_types, v_count, 'QU001'),
          pawl.array_check('states', p_states, v_count, 'QU001', true),
          pawl.array_check('process_ids', p_process_ids, v_count, 'QU001', true),
          pawl.array_check('keys', p_keys, v_count, 'QU001', true),
          pawl.array_check('delays', p_delays, v_count, 'QU001', true),
          pawl.array_check('priorities', p_priorities, v_count, 'QU001', true),
          pawl.array_check('deadlines', p_deadlines, v_count, 'QU001', true),
          pawl.array_check('on_deadline', p_on_deadline, v_count, 'QU001', true),
          pawl.array_check('deadlines_at', p_deadlines_at, v_count, 'QU001', true);
  if cardinality(array_remove(p_keys, null)) > c_keys_max then
    raise exception 'keys must have at most % elements that are not null', c_keys_max using errcode = 'QU001';
  end if;
  select array_agg(i.id order by u.ord) as ids, array_agg(i.refusal order by u.ord) as refusals,
         array_agg(i.delay_ms order by u.ord) as delays_ms, array_agg(i.priority order by u.ord) as priorities,
         array_agg(i.deadline order by u.ord) as deadlines
  into strict v_all
  from unnest(p_types, p_states, p_process_ids, p_keys, p_delays, p_priorities, p_deadlines, p_deadlines_at,
              p_on_deadline)
    with ordinality u (type, state, process_id, key, delay, priority, deadline, deadline_at, on_deadline, ord)
  cross join lateral pawl.start_item(u.type, coalesce(u.state, '{}'), u.process_id, u.key, u.delay, u.priority,
                                     u.deadline, u.deadline_at, u.on_deadline) i;
  select array_agg(u.ord order by u.ord) as ords, array_agg(u.type order by u.ord) as types,
         array_agg(coalesce(u.state, '{}') order by u.ord) as states,
         array_agg(coalesce(u.id, pawl.uuid7()) order by u.ord) as ids,
         array_agg(u.delay_ms order by u.ord) as delays_ms, bool_or(u.delay_ms > 0) as is_delayed,
         array_agg(u.priority order by u.ord) as priorities, array_agg(10) as attempts,
         array_agg(u.deadline order by u.ord) as deadlines, bool_or(u.deadline is not null) as has_deadline,
         array_agg(u.key is not null order by u.ord) as keyed, bool_or(u.key is not null) as has_key
  into strict v_good
  from unnest(p_types, p_states, v_all.ids, v_all.delays_ms, v_all.priorities, v_all.deadlines, p_keys, v_all.refusals)
    with ordinality u (type, state, id, delay_ms, priority, deadline, key, refusal, ord)
  where u.refusal is null;
  return query
    select u.ord::integer, coalesce(s.command_id, u.process_id), coalesce(s.is_new, false), s.status,
           coalesce(u.refusal, regexp_replace(s.refusal, '^payload ', 'state '))
    from unnest(v_all.refusals, p_process_ids) with ordinality u (refusal, process_id, ord)
    left join (
      select v_good.ords[i.ord] as ord, i.command_id, i.is_new, i.status, i.refusal
      from (select v_good.types as types where v_good.types is not null) g -- null: none is good
      cross join lateral pawl.send_items(
        false, v_domain, g.types, v_good.states, v_good.ids, case when v_good.is_delayed then v_good.delays_ms end,
        v_good.priorities, v_good.attempts, null, null, null, null,
        p_attached => case when v_good.has_deadline then v_good.deadlines end,
        p_keyed => case when v_good.has_key then v_good.keyed end) i) s on s.ord = u.ord
    order by u.ord;
end
$$;
