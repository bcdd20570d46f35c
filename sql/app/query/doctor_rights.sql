-- doctor_rights.sql - do the roles exist, and do they have what sql/base/grants.sql says?
-- Columns: missing (roles, separated by ", "), ungranted (how many grants of functions are missing), example, owner (quoted),
-- app_lacks_schema (login app exists, schema app too, and the login may not create objects in it).
select coalesce((select string_agg(distinct c.role, ', ') from pawl.grant_contains() c
                 where not exists (select from pg_roles r where r.rolname = c.role)), '') as missing,
       count(u.name) as ungranted,
       coalesce(min(u.role || ' on ' || u.name), '') as example,
       (select quote_ident(r.rolname) from pg_namespace n join pg_roles r on r.oid = n.nspowner where n.nspname = 'pawl') as owner,
       exists (select from pg_namespace n, pg_roles r
               where n.nspname = 'app' and r.rolname = 'app' and not has_schema_privilege(r.oid, n.oid, 'create')) as app_lacks_schema
from (select 1) one
left join (
  select distinct c.role, g.name
  from pawl.grant_functions() g
  join pawl.grant_contains() c on c.contains = any (string_to_array(g.roles, ' '))
  join pg_roles r on r.rolname = c.role
  join pg_namespace n on n.nspname = split_part(g.name, '.', 1)
  join pg_proc p on p.pronamespace = n.oid and p.proname = split_part(g.name, '.', 2)
  where not has_function_privilege(c.role, p.oid, 'execute') or not has_schema_privilege(c.role, n.oid, 'usage')
) u on true
