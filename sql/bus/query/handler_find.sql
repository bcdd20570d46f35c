-- A handler; no row: there is no such function.
-- $1 schema, $2 name
select pawl.handler_is_safe(p.oid) as is_safe,
       has_schema_privilege(session_user, n.oid, 'usage') and has_function_privilege(session_user, p.oid, 'execute') as is_callable,
       p.prosecdef as is_definer, p.proowner::regrole::text as owner, session_user::text as connected
from pg_catalog.pg_proc p
join pg_catalog.pg_namespace n on n.oid = p.pronamespace
where n.nspname = $1::text and p.proname = $2::text and p.prokind = 'f' and not p.proretset
  and p.pronargs = 2 and p.proargtypes[0] = 'jsonb'::regtype and p.proargtypes[1] = 'uuid'::regtype
  and p.prorettype = 'jsonb'::regtype
