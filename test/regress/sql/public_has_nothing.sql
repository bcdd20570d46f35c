-- A role without grants of its own can neither enter our schemas nor call or read anything in them.
select n.nspname as schema_open_to_public
from pg_namespace n
where n.nspname not like 'pg\_%' and n.nspname not in ('information_schema', 'public')
  and exists (select from aclexplode(coalesce(n.nspacl, acldefault('n', n.nspowner))) a where a.grantee = 0)
order by 1;

select p.oid::regprocedure as function_open_to_public
from pg_proc p
join pg_namespace n on n.oid = p.pronamespace
where n.nspname not like 'pg\_%' and n.nspname not in ('information_schema', 'public')
  and exists (select from aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a where a.grantee = 0)
order by p.oid::regprocedure::text;

select c.oid::regclass as relation_open_to_public
from pg_class c
join pg_namespace n on n.oid = c.relnamespace
where n.nspname not like 'pg\_%' and n.nspname <> 'information_schema' and c.relkind in ('r', 'v', 'm', 'S', 'p')
  and exists (
    select
    from aclexplode(coalesce(c.relacl, acldefault(case c.relkind when 'S' then 's' else 'r' end::"char", c.relowner))) a
    where a.grantee = 0)
order by c.oid::regclass::text;
