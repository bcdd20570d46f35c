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
  if (p_domain ~ '^[A-Za-z0-9][A-Za-z0-9_.:-]{0,53}$') is not true then
    raise exception 'domain must be 1 to 54 letters, digits, "_", ".", ":" or "-", beginning with a letter or digit, got %',
      coalesce('"' || left(p_domain, 80) || '"', 'null') using errcode = 'QP001';
  end if;
  return 'process:' || p_domain;
end
$$;

-- The processes of commands that were just sent, by pawl.send_items. A definition's deadline starts now.
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
  insert into pawl.process (id, definition_id, state, deadline, deadline_action, depth)
  select c.id, d.id, c.payload, pawl.now() + d.deadline_ms * interval '1 ms', d.deadline_action,
         case when c.reply_to like 'response:%' then coalesce(
           (select p.depth + 1 from pawl.process p where p.id = substring(c.reply_to from '^response:([0-9]+)/')::bigint), 1) else 0 end
  from unnest(p_ids) i (id)
  cross join lateral (select c.id, c.type, c.payload, c.reply_to from pawl.command c where c.id = i.id limit 1) c
  left join lateral (
    select d.id, d.deadline_ms, d.deadline_action from pawl.process_definition d
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
-- no step is recorded: one with records is code. A definition's deadline starts now. Null: there is none.
create or replace function pawl.process_bind (p_id bigint, p_token bigint)
  returns integer
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
#variable_conflict use_column
declare
  v_id integer;
begin
  update pawl.process p
  set definition_id = d.id, deadline = pawl.now() + d.deadline_ms * interval '1 ms', deadline_action = d.deadline_action
  from pawl.command c
  join pawl.lease l on l.id = c.id and l.token = p_token
  cross join lateral (select n.name from pawl.domain_name n where n.id = c.domain_id limit 1) n
  join pawl.process_definition d on d.id = pawl.process_definition_newest(substr(n.name, 9), c.type)
  where p.id = p_id and c.id = p_id and p.definition_id is null and not exists (select from pawl.process_step s where s.id = p_id)
  returning d.id into v_id;
  return v_id;
end
$$;

-- One process, in the application's own transaction. Returns its id; a refusal is raised (QU002). max_attempts 10: so many workers may die
-- of one activation before it goes to troubleshooting; failures of steps do not count here.
create or replace function pawl.start (
  p_type text, p_state jsonb default '{}', p_process_id uuid default null, p_domain text default 'process', p_reply_to text default null)
  returns uuid
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
begin
  return pawl.send(pawl.process_domain(p_domain), p_type, coalesce(p_state, '{}'), p_process_id, p_max_attempts => 10, p_reply_to => p_reply_to);
end
$$;
