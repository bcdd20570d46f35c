-- handler.sql - functions of applications that handle commands (`pawl work --sql`, `[worker NAME] sql =`) or are `sql` steps of processes.
--
-- Such a function leaves code behind that runs after it has returned, with the rights of the session: deferred triggers fire as the role that is
-- current at the end of the transaction, and neither SECURITY DEFINER nor `set role` contains them, because they can reset the role. So
-- the whole transaction runs in a session whose login has no right worth stealing: a member of pawl_handler only, which may call the functions
-- of this file and settle or record with a lease's token. pawl.handler_is_safe() refuses every other session, except to functions whose
-- owner may act as the session's role anyway. Checked when the worker starts and again before every call, because the owner may replace the
-- function meanwhile.
--
-- Several commands share a transaction by pawl.handler_call_shared(). Only success counts there: a command whose call fails is undone by itself,
-- and called again in a transaction of its own; what goes wrong with the transaction undoes all of them (ADR 47).
--
-- Settings that a handler leaves changed for its transaction would fail what pawl does in it afterwards: a role without rights, or a
-- short time limit. They are restored.
-- What it says is bounded as well, because the worker would hold it in memory: it gets no notices, and the beginning of a long error. RAISE
-- INFO and the errors of triggers at the commit cannot be kept from it: pg/conn_relay ends the connection after RECEIVED_BYTES_MAX.
-- Errors: 42501 the session or the function is not to be trusted. 42883 the function does not exist. QU070 its result is too large for any
-- worker. P0001 it made its transaction read only, which cannot be undone.

-- A function whose owner may act as the session's login gains nothing. Others need a login that has pawl_handler and no other group of pawl's, also none that
-- it would have to SET ROLE to, and that neither owns pawl's functions nor may claim: what a function leaves behind would have its rights.
-- In plpgsql, which keeps the plan for the next call.
create or replace function pawl.handler_is_safe (p_function oid)
  returns boolean
  language plpgsql stable
as $$
declare
  c_others constant pg_catalog.text[] := '{pawl_reader,pawl_sender,pawl_worker,pawl_poster,pawl_treasurer,pawl_monitor,pawl_app,pawl_admin}'::pg_catalog.text[];
begin
  return (
    select pg_catalog.pg_has_role(p.proowner, session_user, 'member')
        or p.prosecdef and not exists (
             select from pg_catalog.pg_proc c
             where c.pronamespace operator(pg_catalog.=) 'pawl'::pg_catalog.regnamespace and c.proname operator(pg_catalog.=) 'claim'
               and (pg_catalog.has_function_privilege(session_user, c.oid, 'execute') or pg_catalog.pg_has_role(session_user, c.proowner, 'member')))
           and not exists (
             select from pg_catalog.unnest(c_others) o (name)
             where pg_catalog.pg_has_role(session_user, pg_catalog.to_regrole(o.name), 'member'))
    from pg_catalog.pg_proc p
    where p.oid operator(pg_catalog.=) p_function);
end
$$;

-- Has no search_path of its own, because the handler would get it. Dynamic, because the planner may already run parts of a function that
-- is immutable or written in SQL, before the check. Between the call and the restored search_path there are only functions of pg_catalog, no operators.
-- p_is_shared: the caller undoes what fails and fires deferred triggers, and others are called afterwards in the same transaction, under the
-- same settings.
create or replace function pawl.handler_call (p_schema text, p_name text, p_payload jsonb, p_command_id uuid, p_is_shared boolean default false)
  returns jsonb
  language plpgsql
as $$
declare
  -- session_authorization comes before role, which it sets as well. transaction_timeout is of PostgreSQL 17 and later.
  c_settings constant text[] := array['session_authorization', 'role', 'session_replication_role', 'row_security', 'client_encoding',
    'standard_conforming_strings', 'statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout', 'transaction_timeout',
    'client_connection_check_interval', 'client_min_messages',
    'synchronous_commit', 'timezone', 'datestyle', 'intervalstyle', 'bytea_output', 'extra_float_digits']; -- the last 6 are for neighbours
  c_text constant integer := 8192; -- characters of each text of an error
  v_name text := pg_catalog.format('%I.%I', p_schema, p_name);
  v_path text := pg_catalog.current_setting('search_path');
  v_read_only text := pg_catalog.current_setting('transaction_read_only');
  v_call text := pg_catalog.format('select %s($1, $2)', v_name);
  v_count integer := 12;
  v_values text[];
  v_value text;
  v_result jsonb;
  v_state text;
  v_message text;
  v_detail text;
  v_hint text;
  v_context text;
  v_column text;
  v_constraint text;
  v_type text;
  v_table text;
  v_schema text;
begin
  if not pawl.handler_is_safe((v_name || '(pg_catalog.jsonb, pg_catalog.uuid)')::regprocedure) then
    raise exception 'function % must belong to a role that may act as %, or be security definer and be called by a login of pawl_handler only',
      v_name, session_user using errcode = '42501';
  end if;
  if p_is_shared then
    v_count := pg_catalog.cardinality(c_settings);
  end if;
  for i in 1..v_count loop
    v_values[i] := pg_catalog.current_setting(c_settings[i], true);
  end loop;
  v_value := pg_catalog.set_config('client_min_messages', 'error', true);
  if p_is_shared then -- the end of the caller's subtransaction restores whether it may write
    execute v_call into v_result using p_payload, p_command_id;
  else
    begin
      execute v_call into v_result using p_payload, p_command_id;
      set constraints all immediate; -- a deferred constraint that fails is the function's own failure, and not one of the commit
      if not pg_catalog.texteq(pg_catalog.current_setting('transaction_read_only'), v_read_only) then
        raise exception 'function % made its transaction read only, so that its result cannot be stored', v_name;
      end if;
    exception when query_canceled or assert_failure or others then -- each means all: others leaves out the first two
      get stacked diagnostics v_state = returned_sqlstate, v_message = message_text, v_detail = pg_exception_detail,
        v_hint = pg_exception_hint, v_context = pg_exception_context, v_column = column_name, v_constraint = constraint_name,
        v_type = pg_datatype_name, v_table = table_name, v_schema = schema_name;
      if greatest(pg_catalog.length(v_message), pg_catalog.length(v_detail), pg_catalog.length(v_hint), pg_catalog.length(v_context),
           pg_catalog.length(v_column), pg_catalog.length(v_constraint), pg_catalog.length(v_type), pg_catalog.length(v_table),
           pg_catalog.length(v_schema)) operator(pg_catalog.<=) c_text then
        raise;
      end if;
      raise exception using errcode = v_state, message = pg_catalog.left(v_message, c_text), detail = pg_catalog.left(v_detail, c_text),
        hint = pg_catalog.left(v_hint, c_text), column = pg_catalog.left(v_column, c_text),
        constraint = pg_catalog.left(v_constraint, c_text), datatype = pg_catalog.left(v_type, c_text),
        table = pg_catalog.left(v_table, c_text), schema = pg_catalog.left(v_schema, c_text);
    end;
  end if;
  if not pg_catalog.texteq(pg_catalog.current_setting('search_path'), v_path) then
    v_value := pg_catalog.set_config('search_path', v_path, true);
  end if;
  for i in 1..v_count loop
    v_value := pg_catalog.current_setting(c_settings[i], true);
    if v_value <> v_values[i] then
      v_value := pg_catalog.set_config(c_settings[i], v_values[i], true);
    end if;
  end loop;
  if pg_catalog.pg_column_size(v_result) > 64 * 1024 * 1024 then -- the worker would have to hold it in memory, twice
    raise exception 'function % returned more than 64 MiB', v_name using errcode = 'QU070';
  end if;
  return v_result;
end
$$;

-- Calls the function for each of these commands, in this order, and settles those that succeeded, with their results. A row for each of these: ord,
-- status. The caller calls the others again, each in a transaction of its own. Raises when all are to be called again, in words of its own, which are
-- short:
-- - a time limit has struck, which says nothing about the command that it met;
-- - a deferred trigger has failed: they fire when all were called, because a constraint that was set immediate once stays so for the neighbours;
-- - there is a temporary table, which a neighbour would find;
-- - a lease is lost, or locked by another transaction.
-- A subtransaction for each command, and one for each `exception` of a function: other sessions know 64 of them without reading where they belong.
create or replace function pawl.handler_call_shared (
  p_schema text, p_name text, p_ids bigint[], p_tokens bigint[], p_payloads jsonb[], p_command_ids uuid[])
  returns table (ord integer, status text)
  language plpgsql
as $$
declare
  c_commands constant integer := 30;
  c_result constant integer := 1024 * 1024; -- bytes; a larger result is stored alone, because all are held until the end
  v_count integer := pg_catalog.cardinality(p_ids);
  v_done boolean;
  v_result jsonb;
  v_ords integer[] := '{}'::pg_catalog.int4[];
  v_ids bigint[] := '{}'::pg_catalog.int8[];
  v_tokens bigint[] := '{}'::pg_catalog.int8[];
  v_results jsonb[] := '{}'::pg_catalog.jsonb[];
  v_has_result boolean := false;
begin
  if v_count is null or pg_catalog.int4gt(v_count, c_commands)
     or pg_catalog.cardinality(p_tokens) operator(pg_catalog.<>) v_count or p_tokens is null
     or pg_catalog.cardinality(p_payloads) operator(pg_catalog.<>) v_count or p_payloads is null
     or pg_catalog.cardinality(p_command_ids) operator(pg_catalog.<>) v_count or p_command_ids is null then
    raise exception 'ids, tokens, payloads and command_ids must have the same 0 to % elements', c_commands using errcode = 'QU001';
  end if;
  for i in 1..v_count loop
    v_done := false;
    begin
      v_result := pawl.handler_call(p_schema, p_name, p_payloads[i], p_command_ids[i], true);
      v_done := coalesce(pg_catalog.int4le(pg_catalog.pg_column_size(v_result), c_result), true);
      if not v_done then
        raise exception 'its result is stored alone';
      end if;
    exception
      when query_canceled then
        raise exception 'a call in a shared transaction was canceled';
      when assert_failure or others then
        v_done := false;
    end;
    if v_done then
      v_ords := pg_catalog.array_append(v_ords, i);
      v_ids := pg_catalog.array_append(v_ids, p_ids[i]);
      v_tokens := pg_catalog.array_append(v_tokens, p_tokens[i]);
      v_results := pg_catalog.array_append(v_results, v_result);
      v_has_result := v_has_result or v_result is not null;
    end if;
  end loop;
  begin
    set constraints all immediate;
  exception when query_canceled or assert_failure or others then
    raise exception 'a deferred trigger failed in a shared transaction';
  end;
  if pg_catalog.oidne(pg_catalog.pg_my_temp_schema(), 0) -- in a session that has ever had one; else pg_class is not scanned
     and exists (select from pg_catalog.pg_class c where c.relnamespace operator(pg_catalog.=) pg_catalog.pg_my_temp_schema()) then
    raise exception 'a shared transaction has a temporary table';
  end if;
  if pg_catalog.cardinality(v_ids) operator(pg_catalog.>) 0 then
    return query
      select v_ords[s.ord], s.status
      from pawl.settle_items(true, v_ids, v_tokens, pg_catalog.array_fill('complete'::pg_catalog.text, array[pg_catalog.cardinality(v_ids)]),
             case when v_has_result then v_results end, null, null, null, null) s
      where s.settled;
    get diagnostics v_count = row_count;
    if v_count operator(pg_catalog.<>) pg_catalog.cardinality(v_ids) then
      raise exception 'a lease of a shared transaction is lost or locked';
    end if;
  end if;
end
$$;
