-- What a client repeats after a lost answer. A send is the exception: PGMQ's messages have no key, so two sends are two.
select pgmq.create('q');
select pgmq.create('q');
select pgmq.bind_topic('a', 'q');
select pgmq.bind_topic('a', 'q');
select count(*) as queues from pgmq.list_queues();
select count(*) as bindings from pgmq.list_topic_bindings();

select pgmq.send_batch('q', array['1', '2', '3']::jsonb[]);
select msg_id from pgmq.read('q', 100, 3);
select msg_id from pgmq.read('q', 100, 3);
select pgmq.delete('q', 1), pgmq.delete('q', 1);
select pgmq.archive('q', 2), pgmq.archive('q', 2);
select pgmq.delete('q', 2), pgmq.archive('q', 1);
select msg_id, vt from pgmq.set_vt('q', 3, '2030-01-01 UTC'::timestamptz);
select msg_id, vt from pgmq.set_vt('q', 3, '2030-01-01 UTC'::timestamptz);
select msg_id, read_ct from pgmq.q_q;
select msg_id, read_ct from pgmq.a_q;
select pgmq.drop_queue('q');
select pgmq.drop_queue('q');
