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

-- The processes of commands that were just sent, by pawl.send_items. A definition's deadline starts now; pawl.process_deadlines_set has that of
-- the start.
create or replace function pawl.process_create (p_domain text, p_ids bigint[])
  returns void
  language plpgsql security definer set search_path = pawl, pg_temp
  set plan = ordered_cached
as $$
declare
  c_state_max constant integer := 1024 * 1024;
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
    select d.id, pawl.now() + d.deadline_ms * interval '1 ms' as deadline, case when d.deadline_ms is not null then d.deadline_action end as deadline_action
    from pawl.process_definition d
    where d.domain = v_domain and d.type = c.type order by d.version desc limit 1) d on true;
  if exists (select from pawl.process p where p.id = any (p_ids) and jsonb_typeof(p.state) <> 'object') then
    raise exception 'state must be a JSON object' using errcode = 'QU001';
  end if;
  if exists (select from pawl.process p where p.id = any (p_ids) and p.depth > c_depth_max) then
    raise exception 'processes that start processes must be nested at most % levels deep', c_depth_max using errcode = 'QP007';
  end if;
  if exists (select from pawl.command c where c.id = any (p_ids) and c.payload_bytes > c_state_max) then
    raise exception 'state must have at most % bytes as text', c_state_max using errcode = 'QU001';
  end if;
end
$$;

-- The newest definition for a process that was started before its type was defined. Only the worker that has its lease may say so, and only while
-- no step is recorded: one with records is code. A definition's deadline starts now, unless the start gave one. Null: there is none. -1: another
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
    where p.id = p_id and p.definition_id is null and not exists (select from pawl.process_step s where s.id = p_id)) then
    perform from pawl.process p where p.id = p_id for no key update skip locked;
    if not found then
      return -1;
    end if;
    -- The first call may have committed meanwhile.
    update pawl.process p
    set definition_id = d.id, deadline = coalesce(p.deadline, n.deadline),
        deadline_due = case when p.deadline is null then n.deadline else p.deadline_due end,
        deadline_action = case when p.deadline_given is null then d.deadline_action
                               else coalesce(p.deadline_action, pawl.definition_deadline_action(d.id)) end
    from pawl.command c
    join pawl.lease l on l.id = c.id and l.token = p_token
    cross join lateral (select n.name from pawl.domain_name n where n.id = c.domain_id limit 1) m
    join pawl.process_definition d on d.id = pawl.process_definition_newest(substr(m.name, 9), c.type)
    cross join lateral (select pawl.now() + d.deadline_ms * interval '1 ms' as deadline) n
    where p.id = p_id and c.id = p_id and p.definition_id is null and not exists (select from pawl.process_step s where s.id = p_id);
  end if;
  return (select p.definition_id from pawl.process p join pawl.lease l on l.id = p.id and l.token = p_token where p.id = p_id);
end
$$;

-- One process, in the application's own transaction. Returns its id; a refusal is raised (QU002). max_attempts 10: so many workers may die
-- of one activation before it goes to troubleshooting; failures of steps do not count here. p_deadline: from now, or p_deadline_at, in place of the
-- definition's; p_on_deadline: troubleshoot, compensate or fail, what happens then (deadline.sql). p_key: a text in place of the id, which counts in all domains (bus/send_key.sql).
create or replace function pawl.start (
  p_type text, p_state jsonb default '{}', p_process_id uuid default null, p_domain text default 'process', p_reply_to text default null,
  p_deadline interval default null, p_on_deadline text default null, p_deadline_at timestamptz default null, p_key text default null)
  returns uuid
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
declare
  v_deadline text := pawl.deadline_write(p_deadline, p_deadline_at, p_on_deadline);
  v_sent record;
begin
  select * into strict v_sent
  from pawl.send_items(
    false, pawl.process_domain(p_domain), array[p_type], array[coalesce(p_state, '{}')],
    array[pawl.key_or_id(p_key, p_process_id, 'process_id')], null, null, array[10::smallint],
    case when p_reply_to is not null then array[p_reply_to] end, null, null, null,
    p_attached => case when v_deadline is not null then array[v_deadline] end, p_keyed => case when p_key is not null then array[true] end);
  if v_sent.refusal is not null then
    raise exception 'process % exists already: %', v_sent.command_id, regexp_replace(v_sent.refusal, '^payload ', 'state ') using errcode = 'QU002';
  end if;
  return v_sent.command_id;
end
$$;
