-- reply_queue_bound.sql - how many queues pawl creates because a reply_to names them: in a call and in all.

-- In a call: 10.
create function sent(p_first integer, p_last integer) returns bigint language sql as $$
  select count(*) from pawl.send('shop', array_fill('t'::text, array[p_last - p_first + 1]), array_fill('1'::jsonb, array[p_last - p_first + 1]),
    p_reply_to => array(select 'q' || n from generate_series(p_first, p_last) n))
$$;
select sent(1, 11);
select sent(1, 10);
select sent(1, 11);
select count(*) from pawl.reply_queue;

-- Callers that share a transaction: what is too much for one call is tried again.
select status, count(*) from pawl.send_items(true, 'shop', array_fill('t'::text, array[15]), array_fill('1'::jsonb, array[15]), null, null, null, null,
  array(select 'r' || n from generate_series(1, 15) n), null, null, null) group by status order by status;
select count(*) from pawl.reply_queue;

-- In all.
select pawl.reply_queues_bound(22);
select sent(12, 12);
select pawl.reply_queues_percent();
select sent(13, 13);
select sent(1, 12); -- those that are there
select pgmq.create('q13');
select sent(13, 13);
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
