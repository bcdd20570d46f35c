-- handler.sql - functions of applications that handle commands (`pawl work --sql`, `[worker NAME] sql =`).
--
-- A worker's connection often has more rights than the role that owns the handler: in a private PostgreSQL it is a superuser's. A function
-- that is not SECURITY DEFINER runs with the rights of its caller, so its owner would gain them; `set role` would not prevent that,
-- because the function could reset it. So a handler must be SECURITY DEFINER, or belong to a role that may act as the connection's anyway.
-- Checked when the worker starts and again before every call, because its owner may replace it meanwhile.
-- Errors: 42501 the function is not to be trusted. 42883 it does not exist.

create or replace function pawl.handler_is_safe (p_function oid)
  returns boolean
  language sql stable
as $$
  select p.prosecdef or pg_catalog.pg_has_role(p.proowner, current_user, 'member')
  from pg_catalog.pg_proc p
  where p.oid = p_function
$$;

-- Has no search_path of its own, because the handler would get it. Dynamic, because the planner may already run parts of a function that
-- is immutable or written in SQL, before the check.
create or replace function pawl.handler_call (p_schema text, p_name text, p_payload jsonb, p_command_id uuid)
  returns jsonb
  language plpgsql
as $$
declare
  v_name text := pg_catalog.format('%I.%I', p_schema, p_name);
  v_result jsonb;
begin
  if not pawl.handler_is_safe((v_name || '(pg_catalog.jsonb, pg_catalog.uuid)')::regprocedure) then
    raise exception 'function % must be security definer, or belong to a role that may act as %', v_name, current_user
      using errcode = '42501';
  end if;
  execute pg_catalog.format('select %s($1, $2)', v_name) into v_result using p_payload, p_command_id;
  return v_result;
end
$$;
