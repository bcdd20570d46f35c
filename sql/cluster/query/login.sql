-- login.sql - the login of applications in the private server: `app`, with a schema of its own first in its search_path.
--
-- It may do what pawl_app and pawl_treasurer may, and create schemas. It owns nothing of pawl's. The two groups get their rights when the
-- schema is migrated (sql/base/grants.sql); here they are created so that the login is complete from the first start. What an
-- operator changed later is left alone. Run under the lock on home/pg/lock, so one process at a time.
do $$
declare
  v_group text;
begin
  if exists (select from pg_catalog.pg_roles where rolname = 'app')
     and exists (select from pg_catalog.pg_namespace where nspname = 'app') then
    return;
  end if;
  foreach v_group in array array['pawl_app', 'pawl_treasurer'] loop
    if not exists (select from pg_catalog.pg_roles where rolname = v_group) then
      execute format('create role %I nologin', v_group);
    end if;
  end loop;
  if not exists (select from pg_catalog.pg_roles where rolname = 'app') then
    create role app login;
    alter role app set search_path = app, public;
    grant pawl_app, pawl_treasurer to app;
  end if;
  execute format('grant create on database %I to app', current_database());
  create schema if not exists app authorization app;
end
$$
