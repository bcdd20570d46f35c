-- pgmq_applied_again.sql - the definitions are applied again with every release: queues, bindings and throttles survive it.
\set QUIET on
select pgmq.create('q');
select pgmq.send('q', '1');
select pgmq.bind_topic('a', 'q');
select pgmq.enable_notify_insert('q', 5);
set client_min_messages = warning;
\set ECHO none
\set definitions `for file in pgmq/schema.sql pgmq/queue.sql pgmq/partition.sql pgmq/send.sql pgmq/read.sql pgmq/group.sql pgmq/settle.sql pgmq/metrics.sql pgmq/notify.sql pgmq/topic.sql pgmq/grants.sql; do ../../../scripts/embed_sql.py --print ../../../sql $file; done`
:definitions
\set ECHO all
reset client_min_messages;
select queue_name from pgmq.list_queues();
select pattern, queue_name from pgmq.list_topic_bindings();
select queue_name, throttle_interval_ms from pgmq.list_notify_insert_throttles();
select msg_id, message from pgmq.read('q', 100, 10);
