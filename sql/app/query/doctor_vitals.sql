-- doctor_vitals.sql - what pawl doctor wants to know about the server, in one row.
-- Columns: now, version, version_number, read_only, connections, connections_max, longest_seconds, longest_pid,
--          longest_name, wraparound_age, synchronous, durable, data_directory, username (quoted), sees_all, prepared_seconds,
--          prepared_gid (quoted), prepared_in, slot_name, slot_active, slot_age.
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
       coalesce((select s.setting from pg_settings s where s.name = 'data_directory' and inet_server_addr() is null), '') as data_directory,
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
