-- grants.sql - who may do what in schema pgmq; after every other file of it.
--   pawl_reader, pawl_monitor  list_*, metrics*, test_routing: no messages
--   pg_monitor                 the same, and reads all tables and sequences, present and future, as in PGMQ
--   pawl_app                   writes queues and archives, reads the list of queues, bindings and throttles, and runs every function but drop_queue
--   pawl_admin                 the same, and drop_queue
-- _grant_roles and acquire_queue_lock are for the owner of schema pgmq.
-- Reading and writing messages runs with the caller's rights, as in PGMQ, whose clients touch the tables themselves too.
-- New queues belong to the owner of the functions, who makes them (queue.sql), so its default privileges reach them.
-- Objects of other owners are left alone. Roles that come later are caught up with by `select pgmq._grant_roles()`,
-- or `select pawl.grant_roles()`, which calls it, as the owner.
-- Nothing is for the public.

create or replace function pgmq._grant_roles ()
  returns void
  language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_read  constant text[] := array['list_queues', 'metrics', 'metrics_all', 'format_table_name', '_refuse_queue_name',
                                   'test_routing', 'list_notify_insert_throttles', 'list_topic_bindings',
                                   'validate_routing_key', '_validate_words'];
  v_grant text;
begin
  for v_grant in
    with granted as (
      select r.rolname, g.works, g.reads, case when g.reads then 'grant' else 'revoke' end as verb, case when g.reads then 'to' else 'from' end as word
      from (values ('pg_monitor', false, true), ('pawl_reader', false, false), ('pawl_monitor', false, false),
                   ('pawl_app', true, true), ('pawl_admin', true, true)) as g (name, works, reads)
      join pg_roles r on r.rolname = g.name
    ), relation_right as (
      select g.*, k.kind, case when g.works and k.kind = 'table' then 'select, insert, update, delete' else 'select' end as what
      from granted g, (values ('table'), ('sequence')) as k (kind)
    ), owned_relation as (
      select c.oid::regclass as name, case c.relkind when 'S' then 'sequence' else 'table' end as kind,
             c.relkind <> 'S' and c.relname !~ '^[qa]_' as is_plain -- no messages in it
      from pg_class c
      where c.relnamespace = 'pgmq'::regnamespace and c.relkind in ('r', 'p', 'S') and pg_has_role(c.relowner, 'usage')
    ), owned_function as (
      select p.oid::regprocedure as name, p.proname
      from pg_proc p
      where p.pronamespace = 'pgmq'::regnamespace and pg_has_role(p.proowner, 'usage')
    )
    select format('grant usage on schema pgmq to %I', g.rolname) from granted g
    union all
    select format('alter default privileges in schema pgmq %s %s on %ss %s %I', g.verb, g.what, g.kind, g.word, g.rolname) from relation_right g
    union all
    select format('revoke all on %s %s from %I', g.kind, string_agg(r.name::text, ', '), g.rolname)
    from relation_right g join owned_relation r on r.kind = g.kind
    where not g.reads
    group by g.kind, g.rolname
    union all
    select format('grant %s on %s %s to %I', g.what, g.kind, string_agg(r.name::text, ', '), g.rolname)
    from relation_right g join owned_relation r on r.kind = g.kind
    where g.reads or r.is_plain
    group by g.what, g.kind, g.rolname
    union all -- functions write them, and a role that may write could lock them, so that no reply finds its queue
    select format('revoke insert, update, delete on %s from %I', string_agg(r.name::text, ', '), g.rolname)
    from granted g join owned_relation r on r.kind = 'table' and r.is_plain
    where g.works
    group by g.rolname
    union all
    select format('revoke all on function %s from public', string_agg(f.name::text, ', ')) from owned_function f
    union all
    select format('revoke all on function %s from %I', string_agg(f.name::text, ', '), g.rolname)
    from granted g, owned_function f
    group by g.rolname
    union all
    select format('grant execute on function %s to %I', string_agg(f.name::text, ', '), g.rolname)
    from granted g, owned_function f
    where g.works and f.proname not in ('_grant_roles', 'acquire_queue_lock') and (f.proname <> 'drop_queue' or g.rolname = 'pawl_admin') or f.proname = any (v_read)
    group by g.rolname
  loop
    execute v_grant;
  end loop;
end
$$;

select pgmq._grant_roles();
