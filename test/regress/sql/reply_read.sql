-- Reply queues for clients without PGMQ: only what pawl has created, bounded by bytes, acknowledged by the last read.
select count(*) from pawl.send('shop', array_fill('t'::text, array[3]), array_fill('1'::jsonb, array[3]), p_reply_to => array_fill('answers'::text, array[3]));
select pgmq.create('mine');
select pgmq.send('mine', '{"secret": 1}');
select pgmq.send('answers', to_jsonb(repeat(n::text, 1000))) from generate_series(1, 5) n;
select queue, creator = session_user as is_mine, messages, oldest_at is not null as has_oldest from pawl.reply_queue_list(null, 10);
select count(*) from pawl.reply_queue_list('answers', 10);

-- 1002 bytes each: what does not fit was not read.
select msg_id, read_count, length(message::text) from pawl.reply_read('answers', 5, 30, 2500);
select msg_id, read_count, length(message::text) from pawl.reply_read('answers', 1, 30, 10);
select msg_id, read_count, message from pawl.reply_read('answers', 1, 30, 1000);
select msg_id, read_count from pawl.reply_read('answers', 10, 30, 1000000);
select count(*) from pawl.reply_read('answers', 10, 30, 1000000);
update pgmq.q_answers set vt = now() - interval '1 s' where msg_id = 2;
select msg_id, read_count from pawl.reply_read('answers', 10, 30, 1000000);

-- 1 good, 2 by its first read, then by its last, 99 never was, 3 twice in one call.
select * from pawl.reply_ack('answers', '{1,2,99,3,3}', '{1,1,1,1,1}');
select * from pawl.reply_ack('answers', '{1,2}', '{1,2}');
select msg_id from pgmq.q_answers;
select pgmq.send('answers', '1');
select * from pawl.reply_ack('answers', '{6}', '{0}');
select * from pawl.reply_ack('answers', '{}', '{}');

-- Not a reply queue, and malformed arguments.
select * from pawl.reply_read('mine', 1, 30, 1000);
select * from pawl.reply_ack('mine', '{1}', '{0}');
select * from pawl.reply_read('Answers', 1, 30, 1000);
select * from pawl.reply_read(null, 1, 30, 1000);
select * from pawl.reply_read(repeat('x', 200), 1, 30, 1000);
select * from pawl.reply_read('answers', 0, 30, 1000);
select * from pawl.reply_read('answers', null, 30, 1000);
select * from pawl.reply_read('answers', 1, 86401, 1000);
select * from pawl.reply_ack('answers', '{1}', null);
select * from pawl.reply_ack('answers', null, null);
select * from pawl.reply_ack('answers', '{1}', '{1,2}');
select * from pawl.reply_queue_list(null, 0);
select msg_id, read_ct from pgmq.q_mine;
