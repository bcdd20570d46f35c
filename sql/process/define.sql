-- define.sql - definitions of processes: stored once per version, never changed, so that a process keeps the version it started with.
--
-- Definitions are checked before they come here (process/definition.c). Lock order: none; of two that store a new version at the same
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

-- An open process of this type that code has begun: it has records, and no definition; null: there is none.
create or replace function pawl.process_of_code (p_domain text, p_type text)
  returns uuid
  language sql stable
as $$
  select c.command_id
  from (select n.id from pawl.domain_name n where n.name = 'process:' || p_domain) n
  cross join lateral (
    select d.id from pawl.delayed d where d.domain_id = n.id
    union all
    select t.id from pawl.tsq t where t.domain_id = n.id
    union all
    select l.id from pawl.lease l where l.domain_id = n.id
    union all
    select r.id from pawl.ready r where r.domain_id = n.id) o
  join pawl.process p on p.id = o.id and p.definition_id is null
  join pawl.command c on c.id = o.id and c.type = p_type
  where exists (select from pawl.process_step s where s.id = o.id)
  limit 1
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
  if (p_type ~ '^[A-Za-z0-9][A-Za-z0-9_.:-]{0,99}$') is not true then
    raise exception 'type must be 1 to 100 letters, digits, "_", ".", ":" or "-", beginning with a letter or digit'
      using errcode = 'QP001';
  end if;
  if (octet_length(p_source) between 1 and 1048576) is not true then
    raise exception 'definition must have 1 to 1048576 bytes' using errcode = 'QP001';
  end if;
  if jsonb_typeof(pawl.json_parse(p_source)) is distinct from 'object' then
    raise exception 'definition must be a JSON object' using errcode = 'QP001';
  end if;
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
