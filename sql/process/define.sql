-- define.sql - definitions of processes: stored once per version, never changed, so that a process keeps the version it started with.
--
-- Definitions are checked in full before they come here (process/definition.c). A caller in SQL can come without that check, so what every function
-- in SQL and the engine takes for granted is checked here as well: the names, the kinds and the lists of steps. Lock order: none; of two that store a new version at the same
-- time one waits for the other and gets the next number.
-- Errors: QP001 an argument is out of range. QP009 processes of this type are code.

-- A text as JSON; null: it is none.
create or replace function pawl.json_parse (p_text text)
  returns jsonb
  language plpgsql immutable
as $$
begin
  return p_text::jsonb;
exception when others then
  return null;
end
$$;

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

-- An open process of this type that code has begun: it has records, or a worker runs it, and no definition; null: there is none. Pods claim only types that
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
    cross join lateral (select p.id from pawl.process p where p.id = i.id and p.definition_id is null limit 1) p
    cross join lateral (select c.command_id, c.type, c.domain_id from pawl.command c where c.id = i.id limit 1) c
    where c.domain_id = v_domain and c.type = p_type
      and (exists (select from pawl.process_step s where s.id = i.id) or exists (select from pawl.lease l where l.id = i.id))
      and not exists (select from pawl.outcome o where o.id = i.id)
    limit 1);
end
$$;

-- What a step can do: it has exactly one of these fields.
create or replace function pawl.step_kinds ()
  returns text[]
  language sql immutable
as $$
  select array['exec', 'sql', 'http', 'command', 'wallet', 'wait', 'sleep', 'set', 'when', 'fail', 'parallel', 'each', 'process']
$$;

-- Raises unless this is a list of steps. Returns their names, and those of the steps inside of them. p_where: the list, as a path in the file.
create or replace function pawl.steps_check (p_steps jsonb, p_where text, p_depth integer)
  returns text[]
  language plpgsql immutable
as $$
declare
  c_depth_max constant integer := 8;
  v_where text;
  v_step jsonb;
  v_branch record;
  v_number integer := 0;
  v_names text[] := '{}';
begin
  if (jsonb_typeof(p_steps) = 'array' and p_steps <> '[]') is not true then
    raise exception 'definition: % must be an array of steps, got %', p_where, left(coalesce(p_steps::text, 'nothing'), 60) using errcode = 'QP001';
  end if;
  if p_depth > c_depth_max then
    raise exception 'definition: % is nested deeper than % levels', p_where, c_depth_max using errcode = 'QP001';
  end if;
  for v_step in select s from jsonb_array_elements(p_steps) s loop
    v_where := p_where || '[' || v_number || ']';
    v_number := v_number + 1;
    if jsonb_typeof(v_step) <> 'object' or jsonb_typeof(v_step -> 'name') is distinct from 'string'
      or v_step ->> 'name' !~ '^[A-Za-z0-9][A-Za-z0-9_-]{0,49}$' or v_step ->> 'name' = 'end' then
      raise exception 'definition: % must be an object with a name of 1 to 50 letters, digits, "_" or "-" that is not "end"', v_where
        using errcode = 'QP001';
    end if;
    if (select count(*) from unnest(pawl.step_kinds()) k where v_step ? k) <> 1 then
      raise exception 'definition: % must have exactly one of %', v_where, array_to_string(pawl.step_kinds(), ', ') using errcode = 'QP001';
    end if;
    v_names := v_names || (v_step ->> 'name');
    if v_step ? 'each' then
      v_names := v_names || pawl.steps_check(v_step -> 'steps', v_where || '.steps', p_depth + 1);
    elsif jsonb_typeof(v_step -> 'parallel') = 'object' and v_step -> 'parallel' <> '{}' then
      for v_branch in select b.key, b.value from jsonb_each(v_step -> 'parallel') b loop
        v_names := v_names || pawl.steps_check(v_branch.value, v_where || '.parallel.' || v_branch.key, p_depth + 1);
      end loop;
    elsif v_step ? 'parallel' then
      raise exception 'definition: %.parallel must be an object of lists of steps', v_where using errcode = 'QP001';
    end if;
  end loop;
  return v_names;
end
$$;

-- Raises unless the file can be the definition of this type.
create or replace function pawl.definition_check (p_domain text, p_type text, p_source jsonb)
  returns void
  language plpgsql immutable
as $$
declare
  c_steps_max constant integer := 1000;
  v_names text[];
  v_twice text;
begin
  if jsonb_typeof(p_source) is distinct from 'object' then
    raise exception 'definition must be a JSON object' using errcode = 'QP001';
  end if;
  if (p_source -> 'type' = to_jsonb(p_type) and p_source -> 'domain' = to_jsonb(p_domain)) is not true then
    raise exception 'definition must have the type "%" and the domain "%" in its file, too', p_type, p_domain using errcode = 'QP001';
  end if;
  v_names := pawl.steps_check(p_source -> 'steps', 'steps', 1);
  select n into v_twice from unnest(v_names) n group by n having count(*) > 1 order by n limit 1;
  if found then
    raise exception 'definition: the name "%" is taken by several steps', v_twice using errcode = 'QP001';
  end if;
  if cardinality(v_names) > c_steps_max then
    raise exception 'definition: it may have at most % steps, got %', c_steps_max, cardinality(v_names) using errcode = 'QP001';
  end if;
end
$$;

-- Store a definition. One that is equal to the newest is not stored again: is_new false. The first one of a type is refused while processes of this type
-- are open that code has begun: pods would claim them, and no file can continue them.
create or replace function pawl.process_define (
  p_domain text, p_type text, p_source text, p_deadline_ms bigint, p_deadline_action text, p_author text,
  out id integer, out version integer, out is_new boolean)
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
#variable_conflict use_column
declare
  v_code uuid;
begin
  perform pawl.process_domain(p_domain);
  perform pawl.name_check('type', p_type, 100, 'QP001');
  if (octet_length(p_source) between 1 and 1048576) is not true then
    raise exception 'definition must have 1 to 1048576 bytes' using errcode = 'QP001';
  end if;
  perform pawl.definition_check(p_domain, p_type, pawl.json_parse(p_source));
  if p_deadline_ms is not null and (p_deadline_ms between 1 and 315360000000) is not true then
    raise exception 'deadline must be from 1 to 315360000000 ms, got %', p_deadline_ms using errcode = 'QP001';
  end if;
  if p_deadline_action is not null and p_deadline_action not in ('troubleshoot', 'compensate', 'fail') then
    raise exception 'deadline action must be troubleshoot, compensate or fail, got "%"', left(p_deadline_action, 80) using errcode = 'QP001';
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
