-- grants.sql - who may do what in schema pgmq; after every other file of it.
--   pawl_reader, pawl_monitor  list_*, metrics*, test_routing: no messages
--   pg_monitor                 the same, and reads all tables and sequences, present and future, as in PGMQ
--   pawl_app                   writes queues, archives, bindings and throttles, and runs every function but drop_queue
--   pawl_admin                 runs every function but _grant_roles, which is for the owner of schema pgmq
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
                                   'validate_routing_key'];
  v_grant text;
begin
  for v_grant in
    with granted as (
      select r.rolname, g.works, g.reads, case when g.works then 'select, insert, update, delete' else 'select' end as what
      from (values ('pg_monitor', false, true), ('pawl_reader', false, false), ('pawl_monitor', false, false),
                   ('pawl_app', true, true), ('pawl_admin', true, true)) as g (name, works, reads)
      join pg_roles r on r.rolname = g.name
    ), owned_relation as (
      select c.oid::regclass as name, c.relkind, c.relname !~ '^[qa]_' as is_plain -- no messages in it
      from pg_class c
      where c.relnamespace = 'pgmq'::regnamespace and c.relkind in ('r', 'p', 'S') and pg_has_role(c.relowner, 'usage')
    ), owned_function as (
      select p.oid::regprocedure as name, p.proname
      from pg_proc p
      where p.pronamespace = 'pgmq'::regnamespace and pg_has_role(p.proowner, 'usage')
    )
    select format('grant usage on schema pgmq to %I', g.rolname) from granted g
    union all
    select format('alter default privileges in schema pgmq %s %s on tables %s %I', m.verb, g.what, m.word, g.rolname)
    from granted g, lateral (values (case when g.reads then 'grant' else 'revoke' end,
                                     case when g.reads then 'to' else 'from' end)) as m (verb, word)
    union all
    select format('alter default privileges in schema pgmq %s select on sequences %s %I', m.verb, m.word, g.rolname)
    from granted g, lateral (values (case when g.reads then 'grant' else 'revoke' end,
                                     case when g.reads then 'to' else 'from' end)) as m (verb, word)
    union all
    select format('revoke all on %s from %I', string_agg(r.name::text, ', '), g.rolname)
    from granted g, owned_relation r
    where r.relkind <> 'S' and not g.reads
    group by g.rolname
    union all
    select format('revoke all on sequence %s from %I', string_agg(r.name::text, ', '), g.rolname)
    from granted g, owned_relation r
    where r.relkind = 'S' and not g.reads
    group by g.rolname
    union all
    select format('grant %s on %s to %I', g.what, string_agg(r.name::text, ', '), g.rolname)
    from granted g, owned_relation r
    where r.relkind <> 'S' and (g.reads or r.is_plain)
    group by g.what, g.rolname
    union all
    select format('grant select on sequence %s to %I', string_agg(r.name::text, ', '), g.rolname)
    from granted g, owned_relation r
    where r.relkind = 'S' and g.reads
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
    where g.works and f.proname <> '_grant_roles' and (f.proname <> 'drop_queue' or g.rolname = 'pawl_admin') or f.proname = any (v_read)
    group by g.rolname
  loop
    execute v_grant;
  end loop;
end
$$;

select pgmq._grant_roles();
