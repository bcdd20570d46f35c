-- handler.sql - functions of applications that handle commands (`pawl work --sql`, `[worker NAME] sql =`).
--
-- A worker's connection often has more rights than the role that owns the handler: in a private PostgreSQL it is a superuser's. A function
-- that is not SECURITY DEFINER runs with the rights of its caller, so its owner would gain them; `set role` would not prevent that,
-- because the function could reset it. So a handler must be SECURITY DEFINER, or belong to a role that may act as the connection's anyway.
-- Checked when the worker starts and again before every call, because its owner may replace it meanwhile.
--
-- Settings that a handler leaves changed for its transaction would hold for what pawl does in it afterwards: a role without rights or a short time limit
-- would fail that, and by a search_path it would call operators of the handler's owner with the rights of the connection. They are restored.
-- Errors: 42501 the function is not to be trusted. 42883 it does not exist. QU070 its result is too large for any worker. P0001 it made its
-- transaction read only, which cannot be undone.

create or replace function pawl.handler_is_safe (p_function oid)
  returns boolean
  language sql stable
as $$
  select p.prosecdef or pg_catalog.pg_has_role(p.proowner, current_user, 'member')
  from pg_catalog.pg_proc p
  where p.oid = p_function
$$;

-- Has no search_path of its own, because the handler would get it. Dynamic, because the planner may already run parts of a function that
-- is immutable or written in SQL, before the check. Between the call and the restored search_path there are only functions of pg_catalog, no operators.
create or replace function pawl.handler_call (p_schema text, p_name text, p_payload jsonb, p_command_id uuid)
  returns jsonb
  language plpgsql
as $$
declare
  -- session_authorization comes before role, which it sets as well. transaction_timeout is of PostgreSQL 17 and later.
  c_settings constant text[] := array['session_authorization', 'role', 'session_replication_role', 'row_security', 'client_encoding',
    'standard_conforming_strings', 'statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout', 'transaction_timeout'];
  v_name text := pg_catalog.format('%I.%I', p_schema, p_name);
  v_path text := pg_catalog.current_setting('search_path');
  v_read_only text := pg_catalog.current_setting('transaction_read_only');
  v_values text[];
  v_value text;
  v_result jsonb;
begin
  if not pawl.handler_is_safe((v_name || '(pg_catalog.jsonb, pg_catalog.uuid)')::regprocedure) then
    raise exception 'function % must be security definer, or belong to a role that may act as %', v_name, current_user
      using errcode = '42501';
  end if;
  for i in 1..10 loop
    v_values[i] := pg_catalog.current_setting(c_settings[i], true);
  end loop;
  execute pg_catalog.format('select %s($1, $2)', v_name) into v_result using p_payload, p_command_id;
  set constraints all immediate; -- a deferred constraint that fails is the function's own failure, and not one of the commit
  if not pg_catalog.texteq(pg_catalog.current_setting('search_path'), v_path) then
    v_value := pg_catalog.set_config('search_path', v_path, true);
  end if;
  for i in 1..10 loop
    v_value := pg_catalog.current_setting(c_settings[i], true);
    if v_value <> v_values[i] then
      v_value := pg_catalog.set_config(c_settings[i], v_values[i], true);
    end if;
  end loop;
  if pg_catalog.current_setting('transaction_read_only') <> v_read_only then
    raise exception 'function % made its transaction read only, so that its result cannot be stored', v_name;
  end if;
  if pg_catalog.pg_column_size(v_result) > 64 * 1024 * 1024 then -- the worker would have to hold it in memory, twice
    raise exception 'function % returned more than 64 MiB', v_name using errcode = 'QU070';
  end if;
  return v_result;
end
$$;
