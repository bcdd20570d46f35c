-- command_maintain.sql - abandoned batches, old replies, idle reply queues, resolved dead letters; schedules that are set; listings.

-- A batch that was opened and abandoned is sealed and completes; one that is still fed, or held by a sender, is not.
select count(*) from pawl.batch_new('00000000-0000-4000-8000-00000000000a', 'abandoned', '{"domain": "report", "type": "done"}');
select count(*) from pawl.batch_new('00000000-0000-4000-8000-00000000000b', 'fed', null);
select count(*) from pawl.send('shop', array['a'], array['1']::jsonb[], p_batch_id => '00000000-0000-4000-8000-00000000000b');
update pawl.batch set created_at = pawl.now() - interval '8 days';
select pawl.batch_idle_s() between 691200 and 691300 as idle;
select pawl.batch_expire(100, interval '7 days');
select name, sealed_at is not null as sealed, completed_at is not null as completed, expired from pawl.batch order by name;
select type from pawl.command where type = 'done';
select pawl.batch_expire(100, interval '7 days');
select pawl.batch_idle_s() < 100 as fresh;
select pawl.send('shop', 'a', '1'::jsonb, p_batch => '00000000-0000-4000-8000-00000000000a');
select pawl.batch_expire(null, interval '7 days');
select pawl.batch_expire(1, null);
select pawl.batch_expire(1, interval '-1 day');

-- Replies go by age; a queue that pawl made goes when it has been idle for that long, a queue of its reader's never.
select pgmq.create('own');
select count(*) from pawl.send('till', '{a,a,a}'::text[], '{1,2,3}'::jsonb[], p_reply_to => '{made,own,busy}');
select name from pawl.reply_queue order by name;
select (select count(*) from pgmq.send_batch('made', '{1,2}')) as made, pgmq.send('busy', '3') as busy, pgmq.send('own', '4') as own;
select * from pawl.prune_replies(100, interval '30 days', null);
update pgmq.q_made set enqueued_at = pawl.now() - interval '31 days';
update pgmq.q_own set enqueued_at = pawl.now() - interval '31 days';
select * from pawl.prune_replies(100, interval '30 days', null);
update pawl.reply_queue set used_at = pawl.now() - interval '31 days';
select * from pawl.prune_replies(100, interval '30 days', null);
select queue_name from pgmq.meta order by 1;
select name from pawl.reply_queue order by name;
-- Its archive keeps it.
select pgmq.archive('busy', 1);
update pawl.reply_queue set used_at = pawl.now() - interval '31 days';
select * from pawl.prune_replies(100, interval '30 days', null);
select queue_name from pgmq.meta order by 1;
-- The reply of a command that ends later makes it again.
select s.status from pawl.claim(pawl.domain_find('till'), 1, 60000, array_fill(0::bigint, array[10]), null, 'w') c,
  pawl.settle(array[c.id], array[c.token], '{complete}') s;
select count(*) from pgmq.q_made;
select * from pawl.prune_replies(0, interval '30 days', null);
select * from pawl.prune_replies(1, interval '-1 day', null);
-- One that is broken stops none.
drop table pgmq.a_busy;
update pawl.reply_queue set used_at = pawl.now() - interval '31 days';
update pgmq.q_made set enqueued_at = pawl.now() - interval '31 days';
select * from pawl.prune_replies(100, interval '30 days', null);

-- Dead letters that were resolved.
insert into pawl.failed_operations (operation_type, operation_key, operation_data, error_message, error_code, created_at, status, next_retry_at)
select 't', n::text, '{}', 'x', 'y', pawl.now() - interval '100 days', case when n <= 3 then 'resolved' else 'failed' end, pawl.now()
from generate_series(1, 4) n;
select pawl.prune_dead_letters(2, interval '90 days'), pawl.prune_dead_letters(100, interval '101 days');
select pawl.prune_dead_letters(100, interval '90 days');
select status, count(*) from pawl.failed_operations group by 1;
select pawl.prune_dead_letters(100, interval '-1 day');

-- Schedules.
select * from pawl.retry_policy_list('shop');
select pawl.retry_policy_set('shop', null, '{1000,2000}'), pawl.retry_policy_set('shop', 'charge', '{0}');
select * from pawl.retry_policy_list('shop');
select pawl.retry_delay_ms(pawl.domain_find('shop'), 'other', 5) between 1600 and 2000 as domain, pawl.retry_delay_ms(pawl.domain_find('shop'), 'charge', 1) as type;
select pawl.retry_policy_set('shop', 'charge', '{5000}');
select pawl.retry_policy_set('shop', null, null);
select * from pawl.retry_policy_list('shop');
select pawl.retry_policy_set('fresh', null, '{1000}');
select * from pawl.retry_policy_list('nowhere');
select pawl.retry_policy_set('shop', null, '{}');
select pawl.retry_policy_set('shop', null, '{1000,null}');
select pawl.retry_policy_set('shop', null, '{-1}');
select pawl.retry_policy_set('shop', null, '{2147483648}');
select pawl.retry_policy_set('shop', null, '{{1},{2}}');
select pawl.retry_policy_set('shop', 'no type', '{1}');
select pawl.retry_policy_set('no domain', null, '{1}');
select pawl.retry_policy_set(null, null, '{1}');

-- Listings of FAILED and CANCELED do not read what was completed: all outcomes would be some 1,300 pages.
insert into pawl.command (id, domain_id, command_id, type, payload, priority, max_attempts, created_at)
select nextval('pawl.command_seq'), pawl.domain_find('shop') + n % 3, gen_random_uuid(), 'x', '1', 4, 3, pawl.now() from generate_series(1, 100000) n;
insert into pawl.outcome (id, domain_id, status, attempts, ended_at)
select c.id, c.domain_id, case c.id % 10000 when 1 then 'FAILED' when 2 then 'CANCELED' else 'COMPLETED' end, 1, pawl.now()
from pawl.command c where c.type = 'x';
analyze pawl.outcome;
create function read_by (p_query text) returns text language plpgsql as $$
declare
  v_plan json;
begin
  execute 'explain (analyze, buffers, format json) ' || p_query into v_plan;
  return case when (v_plan -> 0 -> 'Plan' ->> 'Shared Hit Blocks')::integer + (v_plan -> 0 -> 'Plan' ->> 'Shared Read Blocks')::integer < 700
              then 'few' else 'many: ' || (v_plan -> 0 -> 'Plan' ->> 'Shared Hit Blocks') end;
end
$$;
select read_by(format('select * from pawl.command_ids(%s, %L, null, 9223372036854775807, 100, null)', d, s))
from (values ('null'), (pawl.domain_find('shop')::text)) d (d), (values ('FAILED'), ('CANCELED')) s (s), generate_series(1, 2);
