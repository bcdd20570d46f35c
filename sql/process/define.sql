-- define.sql - definitions of processes: stored once per version, never changed, so that a process keeps the version it started with.
--
-- src/process/definition.h reads and checks files, and gives SQL what it needs of them: the steps as rows, and the deadline. No function in SQL
-- reads a file. Constraints refuse rows with which functions in SQL could not continue; the caller of pawl.process_define, an operator or a pod,
-- vouches that rows and file agree. Lock order: none; of two that store a new version at the same time one waits for the other and gets the
-- next number.
-- Errors: QP001 an argument is out of range. QP009 processes of this type are code.

-- The commands of a domain that may have begun and have not ended.
create or replace function pawl.process_open_ids (p_domain_id integer)
  returns setof bigint
  language sql stable
as $$
  select d.id from pawl.delayed d where d.domain_id = p_domain_id
  union all
  select t.id from pawl.tsq t where t.domain_id = p_domain_id
  union all
  select l.id from pawl.lease l where l.domain_id = p_domain_id
  union all
  select r.id from pawl.ready r where r.domain_id = p_domain_id
$$;

-- Are there fewer open commands in this domain than processes without a definition? Both are counted up to 100, 400, 1600 ... until one has fewer, so the
-- length of the longer one does not matter.
create or replace function pawl.process_open_is_shorter (p_domain_id integer)
  returns boolean
  language plpgsql stable
  set plan = keyed
as $$
declare
  v_most bigint := 100;
  v_is_shorter boolean := false;
begin
  loop
    exit when (select count(*) from (select from pawl.process p where p.definition_id is null limit v_most) p) < v_most;
    v_is_shorter := (select count(*) from (select from pawl.process_open_ids(p_domain_id) limit v_most) o) < v_most;
    exit when v_is_shorter;
    v_most := v_most * 4;
  end loop;
  return v_is_shorter;
end
$$;

-- An open process of this type that code has begun: it has records, or has continued as new, or a worker runs it, and no definition; null: there is none. Pods claim only types that
-- are defined, so what runs without a definition is run by code. It is one of the processes without a definition and one of the domain's open
-- commands, and the shorter of these lists is read: however many others wait, and however many have ended.
create or replace function pawl.process_of_code (p_domain text, p_type text)
  returns uuid
  language plpgsql stable
  set plan = keyed
as $$
declare
  v_domain integer := pawl.domain_find('process:' || p_domain);
  v_is_open boolean := v_domain is not null and pawl.process_open_is_shorter(v_domain);
begin
  return (
    select c.command_id
    from (select o.id from pawl.process_open_ids(v_domain) o (id) where v_is_open
          union all
          select p.id from pawl.process p where p.definition_id is null and v_domain is not null and not v_is_open) i
    cross join lateral (select p.life from pawl.process p where p.id = i.id and p.definition_id is null limit 1) p
    cross join lateral (select c.command_id, c.type, c.domain_id from pawl.command c where c.id = i.id limit 1) c
    where c.domain_id = v_domain and c.type = p_type
      and (p.life > 1 or exists (select from pawl.process_step s where s.id = i.id) or exists (select from pawl.lease l where l.id = i.id))
      and not exists (select from pawl.outcome o where o.id = i.id)
    limit 1);
end
$$;

-- Insert the steps of a definition: an array of objects in the order of the file, with the columns as members. Name and kind are required; what is
-- not given is that of a step in the list of the process, with nothing inside of it.
create or replace function pawl.definition_steps_insert (p_definition_id integer, p_steps jsonb)
  returns void
  language plpgsql
as $$
begin
  insert into pawl.process_definition_step (
    definition_id, number, last, name, kind, list, position, depth, parent, is_loop, acts, is_compensated, attempts, undo_attempts, sends, undo_sends,
    response, race, responses, until, sleeps, then_at, else_at)
  select p_definition_id, u.ord - 1, coalesce(s.last, u.ord - 1), s.name, s.kind, coalesce(s.list, ''),
         coalesce(s.position, u.ord - 1), coalesce(s.depth, 0), s.parent,
         coalesce(s.is_loop, false), coalesce(s.acts, false), coalesce(s.is_compensated, false), s.attempts, s.undo_attempts, s.sends, s.undo_sends,
         s.response, s.race, s.responses, s.until, s.sleeps, s.then_at, s.else_at
  from jsonb_array_elements(p_steps) with ordinality u (step, ord)
  cross join lateral jsonb_populate_record(null::pawl.process_definition_step, u.step) s;
exception when data_exception or integrity_constraint_violation then
  raise exception 'steps: %', sqlerrm using errcode = 'QP001';
end
$$;

-- Store a definition, with its steps as pawl.definition_steps_insert takes them. One that is equal to the newest is not stored again: is_new
-- false. The first one of a type is refused while processes of this type
-- are open that code has begun: pods would claim them, and no file can continue them.
create or replace function pawl.process_define (
  p_domain text, p_type text, p_source text, p_deadline_ms bigint, p_deadline_action text, p_author text,
  p_steps jsonb, out id integer, out version integer, out is_new boolean)
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
#variable_conflict use_column
declare
  v_code uuid;
begin
  perform pawl.process_domain(p_domain);
  perform pawl.name_check('type', p_type, 100, 'QP001');
  if p_author is not null then
    perform pawl.actor_check('author', p_author, 'QP001');
  end if;
  if (octet_length(p_source) between 1 and 1048576) is not true then
    raise exception 'definition must have 1 to 1048576 bytes' using errcode = 'QP001';
  end if;
  if (jsonb_typeof(p_steps) = 'array' and jsonb_array_length(p_steps) between 1 and 1000) is not true then
    raise exception 'steps must be an array of 1 to 1000 steps' using errcode = 'QP001';
  end if;
  if p_deadline_ms is not null and (p_deadline_ms between 1 and 315360000000) is not true then
    raise exception 'deadline must be from 1 to 315360000000 ms, got %', p_deadline_ms using errcode = 'QP001';
  end if;
  if (p_deadline_action in ('troubleshoot', 'compensate', 'fail')) is not true then
    raise exception 'deadline action must be troubleshoot, compensate or fail, got "%"', left(coalesce(p_deadline_action, 'null'), 80)
      using errcode = 'QP001';
  end if;
  if pawl.process_definition_newest(p_domain, p_type) is null then
    v_code := pawl.process_of_code(p_domain, p_type);
    if v_code is not null then
      raise exception 'type "%" of domain "%" runs as code: process % and perhaps others are open; define another type, or let them end first',
        p_type, p_domain, v_code using errcode = 'QP009';
    end if;
  end if;
  for v_try in 1 .. 10 loop
    select d.id, d.version, false into id, version, is_new
    from pawl.process_definition d where d.id = pawl.process_definition_newest(p_domain, p_type) and d.source = p_source;
    if found then
      return;
    end if;
    insert into pawl.process_definition (domain, type, version, source, deadline_ms, deadline_action, created_at, author)
    select p_domain, p_type, coalesce(max(d.version), 0) + 1, p_source, p_deadline_ms, p_deadline_action, pawl.now(), p_author
    from pawl.process_definition d where d.domain = p_domain and d.type = p_type
    on conflict on constraint process_definition_key do nothing
    returning process_definition.id, process_definition.version, true into id, version, is_new;
    if found then
      perform pawl.definition_steps_insert(id, p_steps);
      return;
    end if;
  end loop;
  raise exception 'definition "%" is being stored by others again and again', p_type using errcode = '55P03';
end
$$;

-- The newest version of a definition; null: there is none.
create or replace function pawl.process_definition_newest (p_domain text, p_type text)
  returns integer
  language sql stable
as $$
  select d.id from pawl.process_definition d where d.domain = p_domain and d.type = p_type order by d.version desc limit 1
$$;
