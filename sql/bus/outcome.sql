-- outcome.sql - waiting for the outcomes of commands: one statement finds those that callers begin to wait for, one asks which have ended.
-- Nothing is locked or written, and settles need not notify: what an application settles in its own SQL is seen as well.
-- Errors: QU001 an argument is malformed.

-- Which commands these are. p_domains: null for any; p_prefixes: what the name of the domain begins with, null for anything. id and domain are NULL for
-- an unknown command, and for an id that several domains have.
create or replace function pawl.outcomes_find (p_command_ids uuid[], p_domains text[], p_prefixes text[])
  returns table (ord integer, id bigint, domain text, ended boolean)
  language plpgsql stable security definer set search_path = pawl, pg_temp
  set plan = keyed_cached
as $$
#variable_conflict use_column
declare
  v_count constant integer := cardinality(p_command_ids);
begin
  perform pawl.array_check('command_ids', p_command_ids, v_count, 'QU001'), pawl.array_check('domains', p_domains, v_count, 'QU001'),
          pawl.array_check('prefixes', p_prefixes, v_count, 'QU001');
  return query
    select u.ord::integer, f.id, f.name, exists (select from pawl.outcome o where o.id = f.id)
    from unnest(p_command_ids, p_domains, p_prefixes) with ordinality u (command_id, domain, prefix, ord)
    cross join lateral (
      select case when count(*) = 1 then min(c.id) end as id, case when count(*) = 1 then min(n.name) end as name
      from pawl.command c
      cross join lateral (select n.name from pawl.domain_name n where n.id = c.domain_id limit 1) n
      where c.command_id = u.command_id and (u.domain is null or n.name = u.domain)
        and (u.prefix is null or starts_with(n.name, u.prefix))) f;
end
$$;

-- Which of the commands with these numbers have ended. Pods ask it again and again for all that wait.
-- Plan: one index lookup per number.
create or replace function pawl.outcomes_ended (p_ids bigint[])
  returns setof bigint
  language plpgsql stable security definer set search_path = pawl, pg_temp
  set plan = keyed_cached
as $$
begin
  perform pawl.array_check('ids', p_ids, cardinality(p_ids), 'QU001');
  return query
    select u.id from unnest(p_ids) u (id) where exists (select from pawl.outcome o where o.id = u.id);
end
$$;

-- How a command has ended, or its present status and why its last attempt failed. The status of a process is a process's. No row: unknown.
create or replace function pawl.outcome_get (p_id bigint)
  returns table (ended boolean, status text, result text, error text)
  language sql stable security definer set search_path = pawl, pg_temp
as $$
  select o.id is not null, coalesce(pawl.attached_status(c.id), pawl.command_status(c.id)), o.result::text,
         case when o.id is null then pawl.command_error(c.id) else o.error end
  from pawl.command c
  left join pawl.outcome o on o.id = c.id
  where c.id = p_id
$$;
