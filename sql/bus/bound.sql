-- bound.sql - what an API key that is bound to domains may touch.
--
-- A pattern is a name, or a prefix and "*": src/base/bound.h is the same for C. The processes of a domain belong to it, so a key that is bound to
-- "shop" has "process:shop". Domains of a bot are in no binding: every group writes there. Patterns that are null are no binding.
-- Errors: QU001 a list without a domain, and more domains than one call reads. Lock order: none.

create or replace function pawl.bound_text (p_text text, p_patterns text[])
  returns boolean
  language sql immutable
as $$
  select exists (
    select from unnest(p_patterns) p (pattern)
    where case when right(p.pattern, 1) = '*' then starts_with(p_text, left(p.pattern, -1)) else p_text = p.pattern end)
$$;

create or replace function pawl.bound_domain (p_domain text, p_patterns text[])
  returns boolean
  language sql immutable
as $$
  select p_patterns is null or (p_domain !~ '^telegram:' and pawl.bound_text(regexp_replace(p_domain, '^process:', ''), p_patterns))
$$;

-- The domains that a list reads, one row each; null: all of them. p_domain: the one that the client has named, without "process:" where p_of is
-- 'processes', as in the result.
create or replace function pawl.bound_domains (p_patterns text[], p_domain text, p_of text)
  returns table (domain text)
  language plpgsql stable security definer set search_path = pawl, pg_temp
  set plan = index
  rows 10
as $$
declare
  c_most constant integer := 100;
  v_prefix text := case p_of when 'processes' then 'process:' else '' end;
  v_names text[];
begin
  if p_patterns is null then
    return query select p_domain;
    return;
  end if;
  if p_domain is not null then
    return query select p_domain where pawl.bound_domain(v_prefix || p_domain, p_patterns);
    return;
  end if;
  v_names := array(
    select distinct substr(d.name, char_length(v_prefix) + 1)
    from pawl.domain_name d
    where starts_with(d.name, v_prefix) and pawl.bound_domain(d.name, p_patterns)
    limit c_most + 1);
  if cardinality(v_names) > c_most then
    raise exception 'the key is bound to more than % domains that have commands: name one of them with domain', c_most using errcode = 'QU001';
  end if;
  return query select unnest(v_names);
end
$$;

-- The domains within the binding that have a command of this id, by name. p_domain: only this one.
create or replace function pawl.bound_command (p_command_id uuid, p_domain text, p_patterns text[])
  returns table (domain text)
  language sql stable security definer set search_path = pawl, pg_temp
  set plan = index
  rows 1
as $$
  select distinct d.name
  from pawl.command c
  cross join lateral (select n.name from pawl.domain_name n where n.id = c.domain_id limit 1) d
  where c.command_id = p_command_id and d.name = coalesce(p_domain, d.name) and pawl.bound_domain(d.name, p_patterns)
  order by d.name
$$;

-- Whose is a batch? 'own': it has commands, all of them within the binding. 'none': no batch has this id. Else 'other'. Reads as many commands as its
-- progress does.
create or replace function pawl.bound_batch (p_batch uuid, p_patterns text[])
  returns text
  language plpgsql stable security definer set search_path = pawl, pg_temp
  set plan = keyed
as $$
declare
  v_id bigint := (select b.id from pawl.batch b where b.batch_id = p_batch);
  v_domains integer[];
begin
  if v_id is null then
    return 'none';
  end if;
  v_domains := array(select d.id from pawl.domain_name d where pawl.bound_domain(d.name, p_patterns));
  if not exists (select from pawl.command c where c.batch_id = v_id)
     or exists (select from pawl.command c where c.batch_id = v_id and c.domain_id <> all (v_domains)) then
    return 'other';
  end if;
  return 'own';
end
$$;
