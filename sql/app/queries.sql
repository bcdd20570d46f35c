-- queries.sql - the statements that C sends for periodic tasks and doctor: `-- name: NAME` begins sql_app_NAME.

-- name: doctor_ledger
-- Seconds by which the newest transactions of the ledger are ahead of the database's clock.
select wallet.clock_ahead() as ahead_s

-- name: doctor_login
-- What the login of handlers may do; run by that login. Columns: login (quoted), is_super, may_call (functions of
-- applications), is_member (of pawl_handler), is_owner (may do as pawl does), others (its other groups of pawl's,
-- quoted, separated by ", "), owner (of schema pawl, quoted).
select quote_ident(session_user) as login,
       (select r.rolsuper from pg_roles r where r.rolname = session_user) as is_super,
       has_schema_privilege(session_user, n.oid, 'usage') and coalesce((
         select bool_and(has_function_privilege(session_user, p.oid, 'execute')) from pg_proc p
         where p.pronamespace = n.oid and p.proname in ('handler_call', 'handler_is_safe', 'settle_items', 'process_write')), false) as may_call,
       coalesce(pg_has_role(session_user, to_regrole('pawl_handler'), 'usage'), false) as is_member,
       pg_has_role(session_user, n.nspowner, 'member') as is_owner,
       coalesce((select string_agg(o.name, ', ' order by o.name)
                 from unnest('{pawl_reader,pawl_sender,pawl_worker,pawl_poster,pawl_treasurer,pawl_monitor,pawl_app,pawl_admin}'::text[]) o (name)
                 where pg_has_role(session_user, to_regrole(o.name), 'member')), '') as others,
       quote_ident(n.nspowner::regrole::text) as owner
from pg_namespace n
where n.nspname = 'pawl'

-- name: doctor_ender
-- May this login end sessions of the handlers'? $1 their login. Columns: may_end, login (this one's, quoted).
select pg_has_role(to_regrole($1::text), 'usage') as may_end, quote_ident(session_user) as login

-- name: doctor_place
-- Where the session is: text place, the same for all sessions of one database.
select (select s.system_identifier from pg_control_system() s) || '/' || d.oid as value
from pg_database d
where d.datname = current_database()

-- name: doctor_rights
-- Do the roles exist, and do they have what sql/base/grants.sql says? Columns: missing (roles, separated by ", "),
-- ungranted (how many grants of functions are missing), example, owner (quoted), app_lacks_schema (login app exists,
-- schema app too, and the login may not create objects in it).
select coalesce((select string_agg(distinct c.role, ', ') from pawl.grant_contains() c
                 where not exists (select from pg_roles r where r.rolname = c.role)), '') as missing,
       count(u.name) as ungranted,
       coalesce(min(u.role || ' on ' || u.name), '') as example,
       (select quote_ident(r.rolname) from pg_namespace n join pg_roles r on r.oid = n.nspowner
        where n.nspname = 'pawl') as owner,
       exists (select from pg_namespace n, pg_roles r
               where n.nspname = 'app' and r.rolname = 'app'
                 and not has_schema_privilege(r.oid, n.oid, 'create')) as app_lacks_schema
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

-- name: doctor_row_types
-- Columns of applications whose type is the row type of a table of pawl's, or an array of it. Columns: columns (how
-- many), name, type, statement (that changes the first one); texts are '' without any.
with own (oid) as (
  select n.oid from pg_namespace n where n.nspname in ('pawl', 'wallet', 'rating', 'pgmq')
), found as (
  select c.oid::regclass::text as relation, quote_ident(a.attname) as name, format_type(a.atttypid, null) as type, c.relkind
  from pg_class r
  join pg_type t on t.typrelid = r.oid
  join pg_attribute a on a.atttypid in (t.oid, t.typarray) and a.attnum > 0 and not a.attisdropped
  join pg_class c on c.oid = a.attrelid and c.relkind in ('r', 'p', 'm', 'c')
  where r.relnamespace in (select o.oid from own o) and c.relnamespace not in (select o.oid from own o) and c.relpersistence <> 't'
  order by 1, 2
)
select count(*) as columns, coalesce(min(f.relation || '.' || f.name), '') as name, coalesce(min(f.type), '') as type,
       coalesce(min(case when f.relkind in ('r', 'p')
         then format('alter table %s alter column %s type jsonb using to_jsonb(%s)', f.relation, f.name, f.name)
         else format('drop and create %s again', f.relation) end), '') as statement
from (select * from found limit 1000) f

-- name: doctor_schedules
-- Columns: as pawl.schedules_failing(); due_s: for how many seconds a schedule has been due that has not fired.
select f.failing, f.name, f.error,
       coalesce((select extract(epoch from pawl.now() - min(t.due_at))::bigint from pawl.schedule_state t where t.due_at is not null), 0) as due_s
from pawl.schedules_failing() f

-- name: doctor_stuck
-- Rows that wait for a monitor or an operator, or for nothing at all. Columns: expired (dead letters whose lease ran
-- out more than a minute ago), failed, unrescued (commands whose lease ran out more than a minute ago), idle_s (how
-- long an open batch has had no new command), read (commands read for the next), lost (those that are in none of the
-- six tables; must be 0), keyless (order keys that no command can pass on; must be 0).
with newest_and_oldest as (
  (select c.id, c.domain_id, c.priority, c.order_key from pawl.command c order by c.id limit 50000)
  union
  (select c.id, c.domain_id, c.priority, c.order_key from pawl.command c order by c.id desc limit 50000)
)
select (select count(*) from pawl.failed_operations f
        where f.status = 'retrying' and f.lease_until < pawl.now() - interval '1 minute') as expired,
       (select count(*) from pawl.failed_operations f where f.status = 'failed') as failed,
       (select count(*) from (
          select from pawl.lease l where l.until < pawl.now() - interval '1 minute' limit 10000) l) as unrescued,
       pawl.batch_idle_s() as idle_s,
       (select count(*) from newest_and_oldest) as read,
       (select count(*)
        from newest_and_oldest c
        where not exists (select from pawl.outcome o where o.id = c.id)
          and not exists (select from pawl.lease l where l.id = c.id)
          and not exists (select from pawl.delayed d where d.id = c.id)
          and not exists (select from pawl.tsq t where t.id = c.id)
          and not exists (select from pawl.ready r
                          where r.domain_id = c.domain_id and r.priority = c.priority and r.pos = c.id)
          and not exists (select from pawl.ready r where r.id = c.id and r.pos <> r.id)
          and not exists (select from pawl.parked p
                          where p.domain_id = c.domain_id and p.order_key = c.order_key and p.id = c.id)) as lost,
       (select count(*) from (select from pawl.parked p
                              where not exists (select from pawl.order_turn t
                                                where t.domain_id = p.domain_id and t.order_key = p.order_key)
                              limit 10000) p)
       + (select count(*)
          from (select t.id from pawl.order_turn t order by t.domain_id, t.order_key limit 50000) t
          where not exists (select from pawl.lease l where l.id = t.id)
            and not exists (select from pawl.delayed d where d.id = t.id)
            and not exists (select from pawl.tsq q where q.id = t.id)
            and not exists (select from pawl.ready r where r.id = t.id and r.pos <> r.id)
            and not exists (select from pawl.command c
                            join pawl.ready r on r.domain_id = c.domain_id and r.priority = c.priority and r.pos = c.id
                            where c.id = t.id)
            and not exists (select from pawl.order_handover h where h.id = t.id)) as keyless

-- name: doctor_vitals
-- What pawl doctor wants to know about the server, in one row.
-- Columns: now, version, version_number, read_only, connections, connections_max, longest_seconds, longest_pid,
--          longest_name, wraparound_age, synchronous, durable, data_directory, username (quoted), sees_all,
--          prepared_seconds, prepared_gid (quoted), prepared_in, slot_name, slot_active, slot_age.
-- Without the rights of pg_read_all_stats, pg_stat_activity shows nothing about other users: sees_all is false.
select (extract(epoch from clock_timestamp()) * 1000000)::bigint as now,
       current_setting('server_version') as version,
       current_setting('server_version_num')::integer as version_number,
       pg_is_in_recovery() or current_setting('default_transaction_read_only') = 'on' as read_only,
       (select count(*)::integer from pg_stat_activity where backend_type = 'client backend') as connections,
       current_setting('max_connections')::integer
         - current_setting('superuser_reserved_connections')::integer as connections_max,
       coalesce(o.seconds, 0) as longest_seconds,
       coalesce(o.pid, 0) as longest_pid,
       coalesce(o.name, '') as longest_name,
       (select max(age(datfrozenxid))::bigint from pg_database) as wraparound_age,
       current_setting('synchronous_commit') <> 'off' as synchronous,
       current_setting('fsync') = 'on' as durable,
       -- Known to few users, and of use only where the server is on this machine.
       coalesce((select s.setting from pg_settings s where s.name = 'data_directory' and inet_server_addr() is null),
                '') as data_directory,
       quote_ident(current_user) as username,
       pg_has_role(current_user, 'pg_read_all_stats', 'usage') as sees_all,
       coalesce(p.seconds, 0) as prepared_seconds,
       coalesce(p.gid, '') as prepared_gid,
       coalesce(p.database, '') as prepared_in,
       coalesce(s.name, '') as slot_name,
       coalesce(s.active, false) as slot_active,
       coalesce(s.age, 0) as slot_age
from (select 1) one
left join lateral (
  -- The oldest open transaction that holds a snapshot or an id: what vacuum has to wait for.
  select extract(epoch from clock_timestamp() - a.xact_start)::bigint as seconds,
         a.pid,
         coalesce(nullif(a.application_name, ''), a.usename::text, 'unknown') as name
  from pg_stat_activity a
  where a.xact_start is not null
    and (a.backend_xmin is not null or a.backend_xid is not null)
    and a.pid <> pg_backend_pid()
    and a.backend_type = 'client backend'
  order by a.xact_start
  limit 1
) o on true
left join lateral (
  -- A prepared transaction outlives its session, and every restart.
  select extract(epoch from clock_timestamp() - x.prepared)::bigint as seconds,
         quote_literal(x.gid) as gid,
         x.database::text as database
  from pg_prepared_xacts x
  order by x.prepared
  limit 1
) p on true
left join lateral (
  -- The slot that holds vacuum back the most; one without a reader does so for ever.
  select r.slot_name::text as name, r.active, h.age
  from pg_replication_slots r,
       lateral (select greatest(age(r.xmin), age(r.catalog_xmin))::bigint as age) h
  where h.age is not null
  order by r.active, h.age desc
  limit 1
) s on true

-- name: doctor_waiting
-- What alerts about shared state are about. One row: queued_s, queued_domain, queued_type, queued_id (the command that
-- has been queued for longest; NULL: none), queued_note (why nothing runs this process), queued_more (besides it,
-- counted up to 10,000), queued_domains (in which any is queued), in_tsq (counted up to 10,000), tsq_domain (of the oldest there),
-- letters_open, retention_jump_s, handlers, handlers_failed and rate_limited (pawl.tally_sum), deepest_domain (in which most are queued;
-- NULL: none), deepest, deepest_s (how many, and since when), deepest_about (that number is an estimate).
--
-- Plan: one step per domain and priority that has work, by index.
with queued as (
  select extract(epoch from pawl.now() - s.since)::bigint as seconds, n.name, c.type, c.command_id
  from pawl.ready_heads() h
  cross join lateral (select c.type, c.command_id from pawl.command c where c.id = h.id limit 1) c
  cross join lateral (select n.name from pawl.domain_name n where n.id = h.domain_id limit 1) n
  cross join lateral (select pawl.queued_since(h.id, h.pos) as since) s
  order by s.since
  limit 1
)
select q.seconds as queued_s, q.name as queued_domain, q.type as queued_type, q.command_id::text as queued_id,
       case when q.name like 'process:%' then pawl.process_type_note(substr(q.name, 9), q.type) end as queued_note,
       greatest((select count(*) from (select from pawl.ready r order by r.domain_id, r.priority, r.pos limit 10001) r) - 1, 0) as queued_more,
       (select count(distinct h.domain_id) from pawl.ready_heads() h) as queued_domains,
       (select count(*) from (select from pawl.tsq t order by t.id limit 10000) t) as in_tsq,
       (select n.name from (select t.domain_id from pawl.tsq t order by t.id limit 1) t
        join pawl.domain_name n on n.id = t.domain_id limit 1) as tsq_domain,
       (select count(*) from pawl.failed_operations f where f.status <> 'resolved') as letters_open,
       pawl.retention_jump_s() as retention_jump_s, t.handlers, t.handlers_failed, t.rate_limited,
       d.domain as deepest_domain, d.queued as deepest, d.oldest_s as deepest_s, 'queued' = any (d.estimated) as deepest_about
from pawl.tally_sum() t
left join queued q on true
left join (select * from pawl.domain_list(p_limit => 1, p_order => 'depth') l where l.queued > 0) d on true

-- name: expire
-- Release holds whose time is over. $1 limit, $2 where to start, in microseconds; null: at the first. Columns: count,
-- next_ms (until the next one ends; at most an hour), low (where the next call may start).
select e.released::bigint as count,
       least(coalesce(ceil(extract(epoch from e.next_at - pawl.now()) * 1000), 3600000), 3600000)::bigint as next_ms,
       pawl.micros(e.low) as low
from wallet.expire_from($1::integer, timestamptz 'epoch' + $2::bigint * interval '1 us') e

-- name: login_needs
-- The smallest groups that may call a function of pawl. $1 its name. Columns: login (quoted), groups (NULL: unknown)
select quote_ident(current_user) as login,
       (select string_agg(distinct 'pawl_' || r.name, ' or ')
        from pawl.grant_functions() g cross join unnest(string_to_array(g.roles, ' ')) r (name)
        where split_part(g.name, '.', 2) = $1 and r.name <> '*') as groups

-- name: login_lacks
-- Whose functions the login may not all call. Columns: login (quoted), worker, monitor, app, admin (true: it may not call a
-- function that pawl_worker, ... may), is_idle (it is a member of one of them and does not inherit its rights), is_read_only (its
-- transactions are, unless they say otherwise), mend (the statement for that; null: a grant, from PostgreSQL 16 on also of a membership
-- that is idle). A group that does not exist, or that was granted nothing, tells nothing: see doctor_rights.
with who as (
  select coalesce(bool_or(pg_has_role(r.oid, 'member') and not pg_has_role(r.oid, 'usage')), false) as is_idle,
         current_setting('default_transaction_read_only')::boolean as is_read_only
  from pg_roles r where r.rolname in ('pawl_worker', 'pawl_monitor', 'pawl_app', 'pawl_admin')
)
select quote_ident(current_user) as login, (select w.is_idle from who w), (select w.is_read_only from who w),
       (select case when w.is_read_only then format('alter role %I set default_transaction_read_only = off', current_user)
                    when w.is_idle and current_setting('server_version_num')::integer < 160000 then format('alter role %I inherit', current_user) end
        from who w) as mend,
       coalesce(bool_or(l.is_denied) filter (where r.rolname = 'pawl_worker'), false) as worker,
       coalesce(bool_or(l.is_denied) filter (where r.rolname = 'pawl_monitor'), false) as monitor,
       coalesce(bool_or(l.is_denied) filter (where r.rolname = 'pawl_app'), false) as app,
       coalesce(bool_or(l.is_denied) filter (where r.rolname = 'pawl_admin'), false) as admin
from (select 1) one
left join pg_roles r on r.rolname in ('pawl_worker', 'pawl_monitor', 'pawl_app', 'pawl_admin')
left join lateral (
  select not (has_schema_privilege(n.oid, 'usage') and has_function_privilege(p.oid, 'execute')) as is_denied
  from pg_namespace n
  join pg_proc p on p.pronamespace = n.oid
  where n.nspname in ('pawl', 'wallet', 'rating') and has_function_privilege(r.oid, p.oid, 'execute')
) l on true

-- name: task_claim
-- $1 names, $2 holder, $3 milliseconds. A row per name, in order: is_held (its lease is ours); in each row the same
-- letters_open, letters_failed (dead letters for the metrics; failed: their tries have run out), ledger_ahead_s (the
-- newest transactions of the ledger, ahead of the database's clock), retention_jump_s (retention waits because of such
-- a jump), schedules_failing, schedules_due_ms (when the next one is due, a day at most), and the sums of pawl.tally_sum()
-- over all processes.
select c.name is not null as is_held, l.letters_open, l.letters_failed, a.ledger_ahead_s, a.retention_jump_s,
       (select count(*) from pawl.schedule_state s where s.failing_since is not null) as schedules_failing,
       pawl.schedules_due_ms(86400000)::bigint as schedules_due_ms,
       t.handlers, t.handlers_failed, t.rate_limited
from unnest($1::text[]) with ordinality u (name, ord)
left join pawl.task_claim($1::text[], $2::text::uuid, $3::integer) c (name) on c.name = u.name
cross join (select count(*) as letters_open, count(*) filter (where f.status = 'failed') as letters_failed
            from pawl.failed_operations f where f.status <> 'resolved') l
cross join (select wallet.clock_ahead() as ledger_ahead_s, pawl.retention_jump_s() as retention_jump_s) a
cross join pawl.tally_sum() t
order by u.ord

-- name: task_release
-- $1 holder. Columns: is_released.
select true as is_released from pawl.task_release($1::text::uuid)
