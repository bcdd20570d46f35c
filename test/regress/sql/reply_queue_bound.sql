-- reply_queue_bound.sql - how many queues pawl creates because a reply_to names them: in a call and in all.

-- In a call: 10.
create function sent(p_first integer, p_last integer, p_actor text default null) returns bigint language sql as $$
  select count(*) from pawl.send('shop', array_fill('t'::text, array[p_last - p_first + 1]), array_fill('1'::jsonb, array[p_last - p_first + 1]),
    p_reply_to => array(select 'q' || n from generate_series(p_first, p_last) n), p_actor => p_actor)
$$;
select sent(1, 11);
select sent(1, 10);
select sent(1, 11);
select count(*) from pawl.reply_queue;

-- Callers that share a transaction: what is too much for one call is tried again.
select status, count(*) from pawl.send_items(true, 'shop', array_fill('t'::text, array[15]), array_fill('1'::jsonb, array[15]), null, null, null, null,
  array(select 'r' || n from generate_series(1, 15) n), null, null, null) group by status order by status;
select count(*) from pawl.reply_queue;

-- Of a sender: a quarter of all, 10 at least.
select creator, count(*) from pawl.reply_queue group by creator;
select pawl.reply_queues_bound(88);
select sent(12, 12);
select sent(13, 13);
select sent(13, 13, 'ann'), sent(1, 12, 'ann');
create role pawl_test_sender login in role pawl_sender;
set session authorization pawl_test_sender;
select count(*) from pawl.send('shop', '{t}'::text[], '{1}'::jsonb[], p_reply_to => '{q14}', p_actor => 'another'); -- whatever it says about itself
reset session authorization;
select name, creator from pawl.reply_queue where name in ('q13', 'q14') order by name;
drop role pawl_test_sender;
select pgmq.drop_queue(name) from pawl.reply_queue where name in ('q12', 'q13', 'q14');
delete from pawl.reply_queue where name in ('q12', 'q13', 'q14');

-- In all.
select pawl.reply_queues_bound(22);
select sent(12, 12, 'ann');
select pawl.reply_queues_percent();
select sent(13, 13, 'ann');
select sent(1, 12, 'ann'); -- those that are there
select pgmq.create('q13');
select sent(13, 13, 'ann');
select count(*) from pgmq.meta;
select pawl.reply_queues_bound(null);
select pawl.reply_queues_bound(0);

-- A queue that was dropped when pawl may not make another: the reply is kept, with what to do.
select pgmq.drop_queue('q1');
select pawl.reply_queues_bound(5); -- and there are others
select count(*) from (select pawl.claim(pawl.domain_find('shop'), 1000, 60000, array_fill(0::bigint, array[10]), null, 'w')) c;
select s.status from pawl.lease l join pawl.command c using (id), pawl.settle(array[l.id], array[l.token], '{complete}') s
where c.reply_to = 'q1' order by c.id limit 1;
select error_message from pawl.failed_operations;

-- Many that were dropped: ten are made again in one call, the other replies are kept.
select pawl.reply_queues_bound(1000);
select count(pgmq.drop_queue('q' || n)) from generate_series(2, 12) n;
delete from pawl.failed_operations;
select status, count(*) from (
  select s.status from (
    select array_agg(l.id order by l.id) as ids, array_agg(l.token order by l.id) as tokens, array_agg('complete'::text) as outcomes
    from (select distinct on (c.reply_to) l.* from pawl.lease l join pawl.command c using (id)
          where c.reply_to in (select 'q' || n from generate_series(2, 12) n) order by c.reply_to, l.id) l) a,
    pawl.settle(a.ids, a.tokens, a.outcomes) s) x group by status;
select count(*) from pgmq.meta where queue_name ~ '^q([2-9]|1[0-2])$';
select error_message from pawl.failed_operations;
