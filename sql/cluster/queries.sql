-- queries.sql - the statements that C sends for the private server: `-- name: NAME` begins sql_cluster_NAME.

-- name: database
-- The private server's one database. Not in a transaction.
create database pawl

-- name: login
-- The logins of the private server. Run by the superuser at each start, under the lock on home/pg/lock, so one process
-- at a time.
--
--   pawl_owner  pawl itself, daemon and commands alike: owns the database and pawl's schemas, sees statistics, creates
--               databases for `pawl bench`. No CREATEROLE: before PostgreSQL 16 that grants pg_execute_server_program.
--               So all groups are created here. A member of handler, to end its sessions
--   handler     transactions that call functions of applications: pawl_handler, and USAGE of schemas that app creates.
--               Their code may change the settings and the password of its own login, so both are reset. It may not
--               signal processes: it could end all others of its login
--   app         applications: pawl_app, pawl_treasurer, and CREATE; a schema of its own comes first in its search_path
--
-- app and handler have at most 80 of the server's 200 connections each, so that code of applications cannot use up
-- those of pawl.
-- The groups get their rights when the schema is migrated (sql/base/grants.sql). What an operator changed later is left
-- alone, but for handler. The default search_path begins with the schema called like the login, and app may create
-- schemas: operators there would run with the rights of this script and of pawl. So both logins, and this script from
-- its first statement on, look for names in pg_catalog only.
do $$
declare
  v_role  text;
  v_sql   text;
begin
  perform pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
  foreach v_role in array array['reader', 'sender', 'worker', 'handler', 'poster', 'treasurer', 'monitor', 'app',
                                'admin'] loop
    if not exists (select from pg_catalog.pg_roles where rolname = 'pawl_' || v_role) then
      execute format('create role %I nologin', 'pawl_' || v_role);
    end if;
  end loop;
  if not exists (select from pg_catalog.pg_roles where rolname = 'pawl_owner') then
    create role pawl_owner login createdb;
    grant pg_monitor to pawl_owner;
  end if;
  if (select datdba <> 'pawl_owner'::regrole from pg_catalog.pg_database where datname = current_database()) then
    execute format('alter database %I owner to pawl_owner', current_database());
  end if;
  foreach v_role in array array['pawl_owner', current_user] loop
    if not exists (select from pg_catalog.pg_db_role_setting s, unnest(s.setconfig) c
                   where s.setrole = v_role::regrole and s.setdatabase = 0 and c like 'search_path=%') then
      execute format('alter role %I set search_path = pg_catalog, pg_temp', v_role);
    end if;
  end loop;
  if not exists (select from pg_catalog.pg_roles where rolname = 'app') then
    create role app login;
    alter role app set search_path = app, public;
    grant pawl_app, pawl_treasurer to app;
  end if;
  if not exists (select from pg_catalog.pg_namespace where nspname = 'app') then
    execute format('grant create on database %I to app', current_database());
    create schema app authorization app;
  end if;
  if not exists (select from pg_catalog.pg_roles where rolname = 'handler') then
    create role handler login;
    grant pawl_handler to handler;
    for v_sql in
      select format('grant usage on schema %I to handler', nspname) from pg_catalog.pg_namespace
      where nspowner = 'app'::regrole
    loop
      execute v_sql;
    end loop;
  end if;
  alter default privileges for role app grant usage on schemas to handler; -- which `drop owned by handler` takes away
  if not pg_has_role('pawl_owner', 'handler', 'usage') then
    grant handler to pawl_owner;
  end if;
  if has_function_privilege('public', 'pg_terminate_backend(integer, bigint)', 'execute') then
    revoke execute on function pg_terminate_backend(integer, bigint), pg_cancel_backend(integer) from public;
    grant execute on function pg_terminate_backend(integer, bigint), pg_cancel_backend(integer) to pawl_owner, pawl_app;
  end if;
  for v_role in select rolname from pg_catalog.pg_roles where rolname in ('app', 'handler') and rolconnlimit = -1 loop
    execute format('alter role %I connection limit 80', v_role);
  end loop;
  for v_sql in
    select format('alter role handler%s reset all', ' in database ' || quote_ident(d.datname))
    from pg_catalog.pg_db_role_setting s left join pg_catalog.pg_database d on d.oid = s.setdatabase
    where s.setrole = 'handler'::regrole
  loop
    execute v_sql;
  end loop;
  if exists (select from pg_catalog.pg_authid where rolname = 'handler' and rolpassword is not null) then
    alter role handler password null;
  end if;
end
$$
