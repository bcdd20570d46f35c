-- queries.sql - the statements that C sends for migrations, sessions, tallies: `-- name: NAME` begins sql_pg_NAME.

-- name: commit_reset
-- Commit, and leave nothing in the session that code which is not pawl's may have put there. As `discard all`, which a
-- list of statements may not contain, but for plans. One message, so that it costs no round trip and a pooler runs all
-- of it on the same connection.
commit; close all; reset session authorization; reset role; reset all; deallocate all; unlisten *;
  select pg_catalog.pg_advisory_unlock_all(); discard temp; discard sequences

-- name: definition_checksum
-- The checksum of the definitions in force; null before they were first applied.
select (select checksum from pawl.definition) as value

-- name: definition_put
-- $1 checksum text
insert into pawl.definition (checksum)
values ($1)
on conflict (single) do update set checksum = excluded.checksum, applied_at = excluded.applied_at

-- name: extension_list
-- The extensions of this database. Columns: name text.
select extname::text as name
from pg_extension
order by extname

-- name: limits
-- The time limits of the statement that follows in the same pipeline and of its waits for locks, in milliseconds, and
-- where it looks for names: pg/tx.c says why. Up to the pipeline's sync all is one transaction, so they end with it.
-- set_config(), because `set local` outside a transaction block warns. The last column says which process of the server
-- runs them: see pg/conn_prepared.c.
select pg_catalog.set_config('statement_timeout', $1, true), pg_catalog.set_config('lock_timeout', $2, true),
       pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true), pg_catalog.pg_backend_pid()

-- name: listen_probe
-- $1 channel text, $2 payload text: the listener's note to itself.
select pg_notify($1, $2)

-- name: lock_holder
-- Who has locked a relation of pawl's for longest. $1 relation, or null: any that blocks others. Columns: value text,
-- null: nobody.
select format('%s of user "%s"%s, in a transaction%s',
              case when l.pid is null then 'a prepared transaction' else 'process ' || l.pid end,
              a.usename, ' ("' || nullif(a.application_name, '') || '")',
              ' since ' || to_char(a.xact_start at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')) as value
from pg_locks l
join pg_class c on c.oid = l.relation
left join pg_stat_activity a on a.pid = l.pid
where l.database = (select d.oid from pg_database d where d.datname = current_database()) and l.granted
  and l.pid is distinct from pg_backend_pid() and c.relnamespace in (
    to_regnamespace('pawl'), to_regnamespace('wallet'), to_regnamespace('rating'), to_regnamespace('pgmq'))
  and ($1::text is null or c.oid = to_regclass($1::text))
order by a.xact_start
limit 1

-- name: migration_bootstrap
-- What must be there before the first migration can be remembered. Several statements. Who creates the table has its
-- lock: another one waits briefly.
set local lock_timeout = '100ms';
-- One row per migration, written once. The time is the server's own: pawl.now() is younger than this table.
create table pawl.migration (
  version    integer     primary key check (version > 0),
  name       text        not null,
  checksum   text        not null,
  applied_at timestamptz not null default clock_timestamp()
);
-- One row at most: the checksum of the definitions as they were last applied. Written once per release.
create table pawl.definition (
  single     boolean     primary key default true check (single),
  checksum   text        not null,
  applied_at timestamptz not null default clock_timestamp()
);

-- name: migration_bootstrap_schema
-- Several statements. Without `if not exists`, which would ask for the right to create it even where it already exists.
-- Who creates the schema has the lock of migrations (migration_lock), so another one waits briefly.
set local lock_timeout = '100ms';
create schema pawl

-- name: migration_dependents
-- Views and functions of users that depend on tables of pawl's schemas, by name. Columns: value text, null: none.
select string_agg(distinct u.name, ', ') as value
from (
  select case when c.oid is null then pg_describe_object(d.classid, d.objid, 0)
              else format('%s %I.%I', case c.relkind when 'm' then 'materialized view' else 'view' end,
                          n.nspname, c.relname) end as name
  from pg_depend d
  join pg_class t on t.oid = d.refobjid and d.refclassid = 'pg_class'::regclass
  left join pg_rewrite r on d.classid = 'pg_rewrite'::regclass and r.oid = d.objid
  left join pg_class c on c.oid = r.ev_class
  left join pg_proc p on d.classid = 'pg_proc'::regclass and p.oid = d.objid
  join pg_namespace n on n.oid = coalesce(c.relnamespace, p.pronamespace)
  where t.relnamespace in (to_regnamespace('pawl'), to_regnamespace('wallet'))
    and n.nspname not in ('pawl', 'wallet', 'rating', 'pgmq') and d.deptype = 'n'
) u

-- name: migration_list
-- What was applied, in order. Columns: version integer, name, checksum, applied_at text.
select version, name, checksum, to_char(applied_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as applied_at
from pawl.migration
order by version

-- name: migration_lock
-- One migrator at a time in this database, until the transaction ends. A lock that only the owner may take: any login
-- could hold an advisory lock. Readers of the table do not wait for it. Polling is better than waiting: a waiter would
-- hold a connection, and its timeout could not be distinguished from a server that does not answer.
lock table pawl.migration in share row exclusive mode nowait

-- name: migration_put
-- $1 version integer, $2 name text, $3 checksum text
insert into pawl.migration (version, name, checksum)
values ($1, $2, $3)

-- name: migration_site
-- What is there before anything of ours is. Columns: has_schema, has_table, may_create_schema, may_create_table
-- boolean; user_name, database_name text; foreign_schema, foreign_owner text: a schema whose owner neither may act as
-- this user nor owns the schema pawl that was migrated before; null: none. Such an owner could replace what pawl
-- creates there.
select p.oid is not null as has_schema, p.has_table,
       has_database_privilege(current_database(), 'create') as may_create_schema,
       coalesce(has_schema_privilege(p.oid, 'create'), false) as may_create_table,
       current_user::text as user_name,
       current_database()::text as database_name,
       f.nspname::text as foreign_schema, f.nspowner::regrole::text as foreign_owner
from (
  select n.oid, n.nspowner,
         exists (select from pg_class c where c.relnamespace = n.oid and c.relname = 'migration') as has_table
  from (select) one left join pg_namespace n on n.nspname = 'pawl') p
left join lateral (
  select n.nspname, n.nspowner
  from pg_namespace n
  where n.nspname in ('pawl', 'wallet', 'rating', 'pgmq') and not pg_has_role(n.nspowner, current_user, 'member')
    and not (p.has_table and n.nspowner = p.nspowner)
  order by n.nspname
  limit 1) f on true

-- name: migration_stranger
-- A function or operator in a schema of pawl's that is not pawl's: of an extension, which any role that may create in
-- the database can put into any schema if it is a trusted one, or of an owner who may not act as the schema's. Likewise
-- an extension of such a role in pg_catalog, which pawl's functions look through as well. Columns: sentence, statement
-- (that removes it) text; no row: none.
select f.sentence, f.statement
from (
  select case when e.oid is null then pg_describe_object(o.classid, o.oid, 0)
              else format('%s of extension "%s"', pg_describe_object(o.classid, o.oid, 0), e.extname) end
           || ' is in a schema of pawl''s, and is not pawl''s' as sentence,
         case when e.oid is null then format('drop %s %s', i.type, i.identity)
              else format('alter extension %I set schema public', e.extname) end as statement, e.extname, i.identity
  from (
    select 'pg_proc'::regclass, p.oid, p.pronamespace, p.proowner from pg_proc p
    union all
    select 'pg_operator'::regclass, p.oid, p.oprnamespace, p.oprowner from pg_operator p
  ) o (classid, oid, namespace, owner)
  join pg_namespace n on n.oid = o.namespace and n.nspname in ('pawl', 'wallet', 'rating', 'pgmq')
  left join pg_depend d on d.classid = o.classid and d.objid = o.oid and d.deptype = 'e'
  left join pg_extension e on e.oid = d.refobjid
  cross join lateral pg_identify_object(o.classid, o.oid, 0) i
  where case when e.oid is null then not pg_has_role(o.owner, n.nspowner, 'member') else e.extname <> 'pgmq' end
  union all
  select format('extension "%s" is in schema pg_catalog, where all sessions look for functions and operators',
                e.extname),
         format('alter extension %I set schema public', e.extname), e.extname, ''
  from pg_extension e
  where e.extnamespace = 'pg_catalog'::regnamespace and e.extrelocatable
    and not (select r.rolsuper from pg_roles r where r.oid = e.extowner)
) f
order by f.extname, f.identity
limit 1

-- name: migration_version
-- The newest migration that was applied; 0: none. Columns: value.
select coalesce(max(version), 0)::bigint as value from pawl.migration

-- name: view_checksum
-- The checksum of the text that a view was made from; null: there is no such view, or it says nothing. $1 view
select obj_description(to_regclass($1::text), 'pg_class') as value

-- name: process
-- The process of the server that runs the transaction, also behind a pooler. Columns: value bigint.
select pg_catalog.pg_backend_pid()::bigint as value

-- name: process_end
-- Ends a process of the server whose transaction began $2 milliseconds ago or earlier, so not one that has the same
-- number later. $1 pid. A commit that waits for a standby has no snapshot any more, and is spared: an end would make
-- it visible without the standby. Columns: is_there, is_ended, is_refused (this login sees and ends only sessions of
-- logins whose rights it has) boolean.
select count(*) > 0 as is_there, coalesce(bool_or(s.is_ended), false) as is_ended,
       coalesce(bool_or(not s.may_end), false) as is_refused
from (
  select case when a.backend_xmin is not null then pg_terminate_backend(a.pid) end as is_ended, r.may_end
  from pg_stat_activity a
  cross join lateral (select pg_has_role(a.usesysid, 'usage') as may_end) r
  where a.pid = $1::integer
    and (a.xact_start <= clock_timestamp() - $2::bigint * interval '1 millisecond' or not r.may_end)) s

-- name: rollback_reset
-- See commit_reset: a rollback keeps advisory locks of the session.
rollback; close all; reset session authorization; reset role; reset all; deallocate all; unlisten *;
  select pg_catalog.pg_advisory_unlock_all(); discard temp; discard sequences

-- name: stat_add
-- $1 source, $2 flush, $3 measures, $4 labels, $5 counts, $6 buckets ('' for none). value: how many rows are new.
select pawl.stat_add($1::text::uuid, $2::bigint, $3::text[], $4::text[], $5::bigint[],
                     array(select nullif(b, '') from unnest($6::text[]) with ordinality u (b, o) order by o)) as value

-- name: stat_list
-- $1 measure, $2 label or null, $3 since in microseconds, $4 step in seconds. Columns: at, count, p50_ms and p95_ms
-- (-1: not a time).
select pawl.micros(s.at) as at, s.count, coalesce(s.p50_us / 1000, -1) as p50_ms,
       coalesce(s.p95_us / 1000, -1) as p95_ms
from pawl.stat_list($1::text, $2::text, timestamptz 'epoch' + $3::bigint * interval '1 us', $4::integer) s

-- name: stat_maintain
-- value: how many rows were deleted.
select pawl.stat_maintain() as value

-- name: tally_add
-- $1 source, $2 number of the flush, $3 names, $4 counts. value: how many were new.
select pawl.tally_add($1::text::uuid, $2::bigint, $3::text[], $4::bigint[]) as value
