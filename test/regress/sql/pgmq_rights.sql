-- pgmq_rights.sql - an application works with queues, a reader sees their lengths, pg_monitor reads them, others see nothing.
create role pgmq_monitor_test in role pg_monitor;
create role pgmq_stranger_test;
\set VERBOSITY terse

set role pawl_app;
select pgmq.create('made_by_app');
select pgmq.create_fifo_index('made_by_app');
select pgmq.enable_notify_insert('made_by_app');
select pgmq.bind_topic('a.#', 'made_by_app');
select pgmq.send_topic('a.b', '1');
select pgmq.send('made_by_app', '2');
select msg_id from pgmq.read('made_by_app', 0, 1);
select msg_id from pgmq.read_grouped('made_by_app', 0, 1);
select msg_id from pgmq.set_vt('made_by_app', 1, 0);
select pgmq.archive('made_by_app', 1), pgmq.delete('made_by_app', 2);
select msg_id from pgmq.pop('made_by_app');
select queue_length, total_messages from pgmq.metrics('made_by_app');
select count(*) from pgmq.a_made_by_app;
-- Replies to queues read the list of queues, and notify by the throttles: an application could make them wait. Functions write these tables.
begin; lock table pgmq.meta in access exclusive mode;
rollback;
begin; lock table pgmq.topic_bindings in access exclusive mode;
rollback;
begin; lock table pgmq.notify_insert_throttle in access exclusive mode;
rollback;
delete from pgmq.meta;
delete from pgmq.topic_bindings;
delete from pgmq.notify_insert_throttle;
select from pgmq.notify_insert_throttle for update;
select pgmq.update_notify_insert('made_by_app', 0);
select pgmq.send('made_by_app', '2');
select throttle_interval_ms, last_notified_at > 'epoch' as is_notified from pgmq.notify_insert_throttle;
select pgmq.disable_notify_insert('made_by_app'), pgmq.unbind_topic('a.#', 'made_by_app');
select count(*) from pgmq.list_topic_bindings();
drop table pgmq.q_made_by_app;
select pgmq.purge_queue('made_by_app');
reset role;

-- Another one works with the same queue.
set role pawl_admin;
select pgmq.send('made_by_app', '3');
reset role;

set role pawl_reader;
select queue_name, queue_length from pgmq.metrics_all();
select queue_name from pgmq.list_queues();
select count(*) from pgmq.q_made_by_app;
select pgmq.send('made_by_app', '1');
delete from pgmq.q_made_by_app;
reset role;

set role pgmq_monitor_test;
select queue_name, total_messages from pgmq.metrics_all();
select count(*) from pgmq.q_made_by_app;
select pgmq.pop('made_by_app');
reset role;

set role pgmq_stranger_test;
select pgmq.list_queues();
select * from pgmq.meta;
reset role;

-- Functions with the owner's rights fix their search_path; so does all PL/pgSQL. The rest was bound when it was made.
select p.oid::regprocedure as open_to_a_search_path
from pg_proc p
join pg_language l on l.oid = p.prolang
where p.pronamespace = 'pgmq'::regnamespace
  and not coalesce('search_path=pg_catalog, pg_temp' = any (p.proconfig), false)
  and not (l.lanname = 'sql' and p.prosqlbody is not null and not p.prosecdef);
select p.oid::regprocedure as with_the_owners_rights
from pg_proc p
where p.pronamespace = 'pgmq'::regnamespace and p.prosecdef
order by p.proname;

-- Only an administrator drops a queue, its creator does not.
set role pawl_app;
select pgmq.drop_queue('made_by_app');
select pgmq.drop_queue('made_by_app', false);
reset role;
set role pawl_admin;
select pgmq.drop_queue('made_by_app');
reset role;
drop role pgmq_monitor_test;
drop role pgmq_stranger_test;

-- Rights are granted by the owner of the schema only.
select r.rolname from pg_roles r where r.rolname like 'pawl\_%' and has_function_privilege(r.rolname, 'pgmq._grant_roles()', 'execute');
