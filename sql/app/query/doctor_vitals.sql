-- doctor_vitals.sql - what pawl doctor wants to know about the server, in one row.
-- Columns: now, version, version_number, read_only, connections, connections_max, longest_seconds, longest_pid,
--          longest_name, wraparound_age, synchronous, durable, roles.
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
       (select count(*)::integer from pg_roles where rolname in ('pawl_reader', 'pawl_app', 'pawl_admin')) as roles
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
