-- reply_queue.sql - which queues retention takes for pawl's own: those that a reply_to created, and no other, however it is spelled.

-- Names that differ only by case share their tables. The reader made this queue, so it is the reader's under every spelling.
select pgmq.create('bills');
select pgmq.send('bills', '"kept"');
select count(*) from pawl.send('shop', '{a,a}'::text[], '{1,2}'::jsonb[], p_reply_to => '{Bills,bills}');
select name from pawl.reply_queue order by name;
select queue_name from pgmq.meta order by 1;
update pgmq.q_bills set enqueued_at = pawl.now() - interval '31 days';
update pawl.reply_queue set used_at = pawl.now() - interval '31 days';
select * from pawl.prune_replies(100, interval '30 days', null);
select message from pgmq.q_bills;

-- It is listed as pawl's own: the reader's row in pgmq.meta says otherwise.
insert into pgmq.meta (queue_name, is_partitioned, is_unlogged) values ('Bills', false, false);
insert into pawl.reply_queue (name, created_at, used_at) values ('Bills', pawl.now(), pawl.now() - interval '31 days');
select * from pawl.prune_replies(100, interval '30 days', null);
select message from pgmq.q_bills;
select name from pawl.reply_queue;

-- One that pawl made, under two spellings: one queue, which goes when it has been idle.
select count(*) from pawl.send('shop', '{a,a}'::text[], '{3,4}'::jsonb[], p_reply_to => '{Made,made}');
select name from pawl.reply_queue;
-- Its reader drops it and creates one of its own: that one stays.
select pgmq.drop_queue('Made');
select pgmq.create('Made');
select pgmq.send('Made', '"kept"');
update pgmq.q_made set enqueued_at = pawl.now() - interval '31 days';
update pawl.reply_queue set used_at = pawl.now() - interval '31 days';
select * from pawl.prune_replies(100, interval '30 days', null);
select message from pgmq.q_made;
select name from pawl.reply_queue;
-- Dropped once more, the next reply makes it again, and then it is pawl's.
select pgmq.drop_queue('made');
select s.status from pawl.claim(pawl.domain_find('shop'), 4, 60000, array_fill(0::bigint, array[10]), null, 'w') c,
  pawl.settle(array[c.id], array[c.token], '{complete}') s;
select lower(name) from pawl.reply_queue;
select count(*) from pgmq.q_made;
delete from pgmq.q_made;
select gone from pawl.prune_replies(100, interval '30 days', null);
update pawl.reply_queue set used_at = pawl.now() - interval '31 days';
select gone from pawl.prune_replies(100, interval '30 days', null);
select queue_name from pgmq.meta order by 1;
select count(*) from pawl.reply_queue;
