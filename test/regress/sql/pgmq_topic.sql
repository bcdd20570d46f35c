-- pgmq_topic.sql - routing keys, patterns, and who gets what.

select pgmq.validate_routing_key('app.user-service.db_1'), pgmq.validate_routing_key(repeat('a', 255));
select pgmq.validate_routing_key('');
select pgmq.validate_routing_key(null);
select pgmq.validate_routing_key(repeat('a', 256));
select pgmq.validate_routing_key('logs.*');
select pgmq.validate_routing_key(E'logs\n');
select pgmq.validate_routing_key('.logs');
select pgmq.validate_routing_key('logs.');
select pgmq.validate_routing_key('logs..error');

select pgmq.validate_topic_pattern(p) from unnest(array['logs.*', '#.error', 'app.*.#', '#', '*', 'a-b.c_d']) as p;
select pgmq.validate_topic_pattern('');
select pgmq.validate_topic_pattern(null);
select pgmq.validate_topic_pattern(repeat('a', 256));
select pgmq.validate_topic_pattern('logs.(a|b)');
select pgmq.validate_topic_pattern('.logs');
select pgmq.validate_topic_pattern('logs.');
select pgmq.validate_topic_pattern('logs..error');
select pgmq.validate_topic_pattern('logs.**');
select pgmq.validate_topic_pattern('logs.##');
select pgmq.validate_topic_pattern('logs.*#');
select pgmq.validate_topic_pattern('logs.#*');

-- Bind and unbind.
select pgmq.create('one'), pgmq.create('two'), pgmq.create('three');
select pgmq.bind_topic('logs.*', '');
select pgmq.bind_topic('logs.*', null);
select pgmq.bind_topic('logs.*', 'nowhere');
select pgmq.bind_topic('logs..*', 'one');
select pgmq.unbind_topic('logs.*', '');
select pgmq.unbind_topic('', 'one');
select pgmq.bind_topic('logs.*', 'one');
select pgmq.bind_topic(pattern => 'logs.*', queue_name => 'one');
select pgmq.bind_topic('logs.#', 'one'), pgmq.bind_topic('logs.#', 'two'), pgmq.bind_topic('a-b.c.#.d', 'three');
select pattern, queue_name, compiled_regex from pgmq.list_topic_bindings() order by 1, 2;
select pattern, queue_name, bound_at <= now() as bound, compiled_regex from pgmq.list_topic_bindings('one');
update pgmq.topic_bindings set bound_at = now() - interval '1 h' where pattern = 'logs.#';
select pattern, queue_name from pgmq.list_topic_bindings();

-- Where would it go?
select pattern, queue_name, compiled_regex from pgmq.test_routing('logs.error');
select pattern, queue_name from pgmq.test_routing('logs.api.error');
select pattern, queue_name from pgmq.test_routing('logs');
select pattern, queue_name from pgmq.test_routing('logsXerror');
select pattern, queue_name from pgmq.test_routing('a-b.c.x.y.d');
select pgmq.test_routing('logs..error');

-- Send: one copy per queue.
select pgmq.send_topic('logs.error', '"plain"');
select pgmq.send_topic('logs.error', '"later"', 100);
select pgmq.send_topic(routing_key => 'logs.a.b', msg => '"headers"', headers => '{"h": 1}', delay => 0);
select pgmq.send_topic('elsewhere', '"lost"');
select pgmq.send_topic('logs.error', null);
select pgmq.send_topic('logs.error', '1', -1);
select pgmq.send_topic('logs..error', '1');
select 'one' as queue, msg_id, message, headers, vt > clock_timestamp() as later from pgmq.q_one
union all
select 'two', msg_id, message, headers, vt > clock_timestamp() from pgmq.q_two
order by 1, 2;

-- Batches: every form.
select * from pgmq.send_batch_topic('logs.x', array['1', '2']::jsonb[]);
select * from pgmq.send_batch_topic('logs.x', array['1']::jsonb[], array['{"h": 1}']::jsonb[]);
select * from pgmq.send_batch_topic('logs.x', array['1']::jsonb[], 100);
select * from pgmq.send_batch_topic('logs.x', array['1']::jsonb[], '2030-01-01 UTC'::timestamptz);
select * from pgmq.send_batch_topic('logs.x', array['1']::jsonb[], array['{"h": 1}']::jsonb[], 100);
select * from pgmq.send_batch_topic('logs.x', array['1']::jsonb[], array['{"h": 1}']::jsonb[], '2030-01-01 UTC'::timestamptz);
select * from pgmq.send_batch_topic('elsewhere', array['1']::jsonb[]);
select * from pgmq.send_batch_topic('logs.x', '{}'::jsonb[]);
select * from pgmq.send_batch_topic('logs.x', array['1']::jsonb[], array['1', '2']::jsonb[]);
select * from pgmq.send_batch_topic('.x', array['1']::jsonb[]);
select msg_id, message, headers, vt > clock_timestamp() as later from pgmq.q_two where msg_id > 3 order by 1;

select pgmq.unbind_topic('logs.*', 'one'), pgmq.unbind_topic('logs.*', 'one');
-- A queue's bindings go with it.
select pgmq.drop_queue('two');
select pattern, queue_name from pgmq.list_topic_bindings();
delete from pgmq.topic_bindings;
