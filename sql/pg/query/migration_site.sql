-- What is there before anything of ours is. Columns: has_schema, has_table, may_create_schema, may_create_table boolean;
-- user_name, database_name text; foreign_schema, foreign_owner text: a schema whose owner neither may act as this user nor owns the schema
-- pawl that was migrated before; null: none. Such an owner could replace what pawl creates there.
select p.oid is not null as has_schema, p.has_table,
       has_database_privilege(current_database(), 'create') as may_create_schema,
       coalesce(has_schema_privilege(p.oid, 'create'), false) as may_create_table,
       current_user::text as user_name,
       current_database()::text as database_name,
       f.nspname::text as foreign_schema, f.nspowner::regrole::text as foreign_owner
from (
  select n.oid, n.nspowner, exists (select from pg_class c where c.relnamespace = n.oid and c.relname = 'migration') as has_table
  from (select) one left join pg_namespace n on n.nspname = 'pawl') p
left join lateral (
  select n.nspname, n.nspowner
  from pg_namespace n
  where n.nspname in ('pawl', 'wallet', 'rating', 'pgmq') and not pg_has_role(n.nspowner, current_user, 'member')
    and not (p.has_table and n.nspowner = p.nspowner)
  order by n.nspname
  limit 1) f on true
