-- pgmq_applied_again.sql - the definitions are applied again with every release: queues, bindings and throttles survive it.
\set QUIET on
select pgmq.create('q');
select pgmq.send('q', '1');
select pgmq.bind_topic('a', 'q');
select pgmq.enable_notify_insert('q', 5);
set client_min_messages = warning;
\set ECHO none
\i ../../../sql/pgmq/schema.sql
\i ../../../sql/pgmq/queue.sql
\i ../../../sql/pgmq/partition.sql
\i ../../../sql/pgmq/send.sql
\i ../../../sql/pgmq/read.sql
\i ../../../sql/pgmq/group.sql
\i ../../../sql/pgmq/settle.sql
\i ../../../sql/pgmq/metrics.sql
\i ../../../sql/pgmq/notify.sql
\i ../../../sql/pgmq/topic.sql
\i ../../../sql/pgmq/grants.sql
\set ECHO all
reset client_min_messages;
select queue_name from pgmq.list_queues();
select pattern, queue_name from pgmq.list_topic_bindings();
select queue_name, throttle_interval_ms from pgmq.list_notify_insert_throttles();
select msg_id, message from pgmq.read('q', 100, 10);
