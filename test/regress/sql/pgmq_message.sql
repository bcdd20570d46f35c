-- pgmq_message.sql - messages in, out and away.

select pgmq.create('q');

-- Send: every form, by position and by name.
select pgmq.send('q', '{"n": 1}');
select pgmq.send('q', '{"n": 2}', '{"h": 2}'::jsonb);
select pgmq.send('q', '{"n": 3}', 100);
select pgmq.send('q', '{"n": 4}', '2030-01-01 UTC'::timestamptz);
select pgmq.send('q', '{"n": 5}', '{"h": 5}'::jsonb, 100);
select * from pgmq.send(queue_name => 'q', msg => '{"n": 6}', headers => '{"h": 6}'::jsonb, delay => '2030-01-01 UTC'::timestamptz);
select pgmq.send('q', null);
select pgmq.send('q', '{"n": 8}', -10);
select msg_id, read_ct, enqueued_at <= now() as sent, last_read_at,
       case when vt = '2030-01-01 UTC' then '2030' when vt > clock_timestamp() + interval '60 s' then 'later' else 'now' end as visible,
       message, headers
from pgmq.q_q
order by msg_id;
select pgmq.purge_queue('q');

-- Batches: every form; ids in the order of the array.
select pgmq.send_batch('q', array['1', '2']::jsonb[]);
select pgmq.send_batch('q', array['3', '4']::jsonb[], array['{"h": 3}', null]::jsonb[]);
select pgmq.send_batch('q', array['5']::jsonb[], 100);
select pgmq.send_batch('q', array['6']::jsonb[], '2030-01-01 UTC'::timestamptz);
select pgmq.send_batch('q', array['7']::jsonb[], array['{"h": 7}']::jsonb[], 100);
select pgmq.send_batch(queue_name => 'q', msgs => array['8', null]::jsonb[], headers => null::jsonb[], delay => '2030-01-01 UTC'::timestamptz);
select msg_id, vt > clock_timestamp() as later, message, headers from pgmq.q_q order by msg_id;
select pgmq.send_batch('q', '{}'::jsonb[]);
select pgmq.send_batch('q', null::jsonb[]);
select pgmq.send_batch('q', array['1', '2']::jsonb[], array['1']::jsonb[]);
select pgmq.send_batch('q', array['1', '2']::jsonb[], '{}'::jsonb[]);
select pgmq.drop_queue('q');
select pgmq.create('q');

-- Read: the lowest ids that are visible; hidden afterwards; with vt 0 not hidden.
select count(*) from pgmq.send_batch('q', array['1', '2', '3', '4', '5']::jsonb[]);
select msg_id, read_ct, last_read_at > enqueued_at as read, vt = last_read_at as visible, message, headers from pgmq.read('q', 0, 2);
select msg_id, read_ct, vt - last_read_at as hidden_for from pgmq.read('q', 100, 2);
select msg_id, read_ct from pgmq.read(queue_name => 'q', vt => 100, qty => 2);
select msg_id from pgmq.read('q', 100, 0);
select msg_id from pgmq.read('q', 100, 10);
select msg_id from pgmq.read('q', 100, 10);

-- Set vt: only that, visible or not; nothing for what is not there.
select msg_id, read_ct, vt <= clock_timestamp() as visible from pgmq.set_vt('q', 1, 0);
select msg_id, read_ct, vt from pgmq.set_vt('q', 2, '2030-01-01 UTC'::timestamptz);
select msg_id, vt <= clock_timestamp() as visible from pgmq.set_vt('q', array[4, 3, 99], 0);
select msg_id, vt from pgmq.set_vt(queue_name => 'q', msg_ids => array[5], vt => '2020-01-01 UTC'::timestamptz);
select msg_id from pgmq.set_vt('q', 99, 0);
select msg_id, read_ct from pgmq.read('q', 0, 10);

-- A message that is sent and read in one transaction; time goes on in it.
begin;
select pgmq.send('q', '"same"');
select msg_id, vt > now() + interval '100 s' as moved from pgmq.read('q', 100, 1, '"same"');
rollback;

-- With a condition.
select pgmq.send_batch('q', array['{"type": "a", "n": [1, 2]}', '{"type": "b"}', '{"type": "a"}', null]::jsonb[]);
select msg_id, message from pgmq.read('q', 0, 10, '{"type": "a"}');
select msg_id, message from pgmq.read('q', 100, 10, conditional => '{"type": "a", "n": [2]}');
select msg_id, message from pgmq.read('q', 0, 1, '{"type": "a"}');
select msg_id, message from pgmq.read('q', 0, 10, '{"type": "c"}');
select msg_id, message from pgmq.read('q', 0, 10, null) where msg_id > 6;

-- Poll: a message that is there, one that arrives later, none in time, no waiting.
select msg_id from pgmq.read_with_poll('q', 100, 1);
select msg_id from pgmq.read_with_poll('q', 100, 10, 0);
select count(*) from pgmq.set_vt('q', array(select msg_id from pgmq.q_q), 100);
select clock_timestamp() as start \gset
select msg_id from pgmq.read_with_poll('q', 100, 10, 1, 50);
select clock_timestamp() - :'start' between '1 s' and '20 s' as waited;
select msg_id from pgmq.set_vt('q', 8, clock_timestamp() + interval '200 ms');
select msg_id from pgmq.read_with_poll(queue_name => 'q', vt => 100, qty => 10, max_poll_seconds => 20, poll_interval_ms => 20,
                                       conditional => '{"type": "b"}');

-- Pop: gone, and not counted as read.
select pgmq.purge_queue('q');
select * from pgmq.pop('q');
select count(*) from pgmq.send_batch('q', array['1', '2', '3', '4']::jsonb[]);
select msg_id, read_ct, last_read_at, message from pgmq.pop('q');
select msg_id from pgmq.read('q', 0, 1);
select msg_id, read_ct, last_read_at is not null as was_read from pgmq.pop('q', 2);
select msg_id from pgmq.read('q', 100, 1);
select msg_id from pgmq.pop(queue_name => 'q', qty => 5);

-- Without a quantity: all. Without an end of the poll: until something comes.
select count(*) from pgmq.send_batch('q', array['1', '2', '3', '4']::jsonb[]);
select count(*) from pgmq.read('q', 100, null);
select count(*) from pgmq.set_vt('q', array(select msg_id from pgmq.q_q), clock_timestamp() + interval '200 ms');
select count(*) from pgmq.read_with_poll('q', 0, null, null, 20);
select count(*) from pgmq.read('q', 0, null);
select count(*) from pgmq.pop('q', null);

-- Delete.
select count(*) from pgmq.send_batch('q', array['1', '2', '3', '4']::jsonb[]);
select min(msg_id) as first_id from pgmq.q_q \gset
select pgmq.delete('q', :first_id), pgmq.delete('q', :first_id), pgmq.delete(queue_name => 'q', msg_id => 99999);
select count(*) = 2 as both from pgmq.delete('q', array[:first_id + 2, :first_id + 1, :first_id, 99999]);
select count(*) from pgmq.q_q;

-- Archive: everything moves; archived again it is unknown.
select pgmq.drop_queue('q');
select pgmq.create('q');
select pgmq.send_batch('q', array['1', '2', '3', '4']::jsonb[], array['{"h": 1}', null, null, null]::jsonb[]);
select msg_id from pgmq.read('q', 100, 1);
select pgmq.archive('q', 1), pgmq.archive('q', 1), pgmq.archive('q', 99);
select pgmq.archive('q', array[4, 2, 99]);
select pgmq.archive(queue_name => 'q', msg_ids => array[4]);
select msg_id, read_ct, last_read_at is not null as was_read, vt > clock_timestamp() as hidden, archived_at = enqueued_at as same_time,
       archived_at <= now() as archived, message, headers
from pgmq.a_q
order by msg_id;
select msg_id from pgmq.q_q;

-- Names with capitals and hyphens.
select pgmq.create('Queue-Cased');
select pgmq.send('Queue-Cased', '1');
select msg_id, message from pgmq.read('Queue-Cased', 100, 1);
select pgmq.archive('Queue-Cased', 1);
