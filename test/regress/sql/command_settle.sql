-- command_settle.sql - a command is always in exactly one table, and one that fails keeps none beside it from going on.

-- Where each command is; every command has to be somewhere.
create view places as
select c.id, c.type, count(p.place) as places, min(p.place) as place
from pawl.command c
left join (select id, 'ready' as place from pawl.ready
           union all select id, 'delayed' from pawl.delayed
           union all select id, 'lease' from pawl.lease
           union all select id, 'tsq' from pawl.tsq
           union all select id, 'outcome' from pawl.outcome) p on p.id = c.id
group by c.id, c.type;

create function claim_all (p_domain text) returns table (id bigint, token bigint, type text) language sql as $$
  select c.id, c.token, c.type
  from pawl.claim(pawl.domain_find(p_domain), 100, 60000, array_fill(0::bigint, array[10]), null, 'w') c
$$;

-- Schedules with holes are refused.
select count(*) from pawl.send('shop', '{a,b,c}'::text[], '{1,2,3}'::jsonb[]);
insert into pawl.retry_policy values (pawl.domain_find('shop'), '*', '{1000,null}');
insert into pawl.retry_policy values (pawl.domain_find('shop'), '*', '{1000,-1}');
insert into pawl.retry_policy values (pawl.domain_find('shop'), '*', '{{1000},{1000}}');
insert into pawl.retry_policy values (pawl.domain_find('shop'), '*', '[0:0]={1000}');
insert into pawl.retry_policy values (pawl.domain_find('shop'), '*', '{}');
insert into pawl.retry_policy values (pawl.domain_find('shop'), 'no type', '{1000}');

-- And they would do no harm: without the constraint a missing delay is a minute.
alter table pawl.retry_policy drop constraint retry_policy_delays_check;
insert into pawl.retry_policy values (pawl.domain_find('shop'), '*', '{null}');
select pawl.retry_delay_ms(pawl.domain_find('shop'), 'a', 1) between 48000 and 60000 as minute,
       pawl.retry_delay_ms(pawl.domain_find('shop'), 'a', null) between 48000 and 60000 as also;
select s.* from claim_all('shop') c, pawl.settle(array[c.id], array[c.token], '{retry}', p_errors => '{x}') s;
select type, places, place from places order by id;
-- Nor does a direct call.
update pawl.delayed set due = pawl.now() - interval '1 s';
select moved from pawl.requeue_due(10, 'epoch', 1000);
select count(pawl.retry_later(c.id, 'x', null, pawl.now())) from claim_all('shop') c;
select type, places, place from places order by id;
-- A move that would lose a row is an error.
select pawl.moved(2, 1);
select pawl.moved(null, 1);

-- A reply queue whose table is gone, although schema pgmq still has it: those beside it end, and the reply waits as a dead letter.
select count(*) from pawl.send('till', '{a,b,c}'::text[], '{1,2,3}'::jsonb[], p_reply_to => '{good,bad,good}',
  p_command_ids => array['00000000-0000-4000-8000-00000000000a', '00000000-0000-4000-8000-00000000000b', '00000000-0000-4000-8000-00000000000c']::uuid[]);
drop table pgmq.q_bad;
select s.*
from (select array_agg(c.id) as ids, array_agg(c.token) as tokens from claim_all('till') c) c,
     pawl.settle(c.ids, c.tokens, '{complete,complete,complete}') s;
select count(*) from pgmq.q_good;
select operation_type, operation_key, operation_data, error_message, error_code, status from pawl.failed_operations;
create table pgmq.q_bad (like pgmq.q_good including all);
select pawl.reply_retry(operation_key) from pawl.failed_operations;
select message ->> 'command_id' as replied from pgmq.q_bad;

-- A canceled command whose worker was lost and whose reply table is gone: the others are requeued, and it ends too.
select count(*) from pawl.send('desk', '{a,b,c}'::text[], '{1,2,3}'::jsonb[], p_reply_to => '{null,bad,null}');
select count(*) from claim_all('desk');
update pawl.lease l set until = pawl.now() - interval '1 s', cancel = c.type = 'b' from pawl.command c where c.id = l.id;
drop table pgmq.q_bad;
select moved from pawl.requeue_due(10, 'epoch', 1000);
select p.type, p.places, p.place from places p join pawl.command c using (id) where c.domain_id = pawl.domain_find('desk') order by p.id;

-- A row that cannot be moved at all: it stays for a minute, the others are requeued.
select count(*) from claim_all('desk');
insert into pawl.outcome (id, domain_id, status, attempts, ended_at)
select l.id, l.domain_id, 'CANCELED', 1, pawl.now() from pawl.lease l order by l.id limit 1;
update pawl.lease l set until = pawl.now() - interval '1 s', cancel = exists (select from pawl.outcome o where o.id = l.id);
select count(*) from pawl.send('desk', '{a,b,c}'::text[], '{4,5,6}'::jsonb[]);
select count(*) from claim_all('desk');
update pawl.lease set until = pawl.now() - interval '1 s';
\set VERBOSITY sqlstate
select moved from pawl.requeue_due(10, 'epoch', 1000);
\set VERBOSITY default
select count(*) as waiting, bool_and(until > pawl.now() + interval '50 s') as later from pawl.lease;
select moved from pawl.requeue_due(10, 'epoch', 1000);

-- What is said about a command that does not exist can be found by what the caller knew of it.
select * from pawl.settle_items(false, '{0}', '{7}', '{complete}', null, null, null, '{till}', '{00000000-0000-4000-8000-0000000000ff}');
select * from pawl.settle_items(false, '{0}', '{7}', '{fail}', null, null, null, '{nowhere}', '{00000000-0000-4000-8000-0000000000fe}');
select * from pawl.settle('{4711}', '{7}', '{reject}');
select a.id, d.name, a.command_id, a.event, a.details
from pawl.audit a left join pawl.domain d on d.id = a.domain_id
where a.details ? 'orphan' order by a.command_id, a.at;

-- More reply queues than a transaction can hold locks for are refused before any is made.
select count(*) from pgmq.meta;
select * from pawl.send('till', array_fill('a'::text, array[3000]), array_fill('1'::jsonb, array[3000]),
  p_reply_to => array(select 'r' || n from generate_series(1, 3000) n));
select count(*) from pgmq.meta;
select count(*) from pawl.send('till', array_fill('a'::text, array[3000]), array_fill('1'::jsonb, array[3000]),
  p_reply_to => array(select 'r' || n % 10 from generate_series(1, 3000) n));
select count(*) from pawl.reply_queue;

-- A lease that another transaction had locked and let go by rolling back is settled as any other, also beside one that has another token,
-- and when it is named twice.
select count(*) from pawl.send('yard', '{a,b,c}'::text[], '{1,2,3}'::jsonb[]);
create table yard as select c.* from claim_all('yard') c;
begin;
select count(*) from (select from pawl.lease l where l.id in (select h.id from yard h where h.type = 'a') for update) l;
rollback;
select s.* from (select array_agg(h.id order by h.type) as ids, array_agg(h.token + (h.type = 'c')::integer order by h.type) as tokens from yard h) h,
  pawl.settle_items(true, h.ids, h.tokens, '{complete,complete,complete}', null, null, null, null, null) s;
select s.* from (select array_agg(h.id) as ids, array_agg(h.token) as tokens from yard h, generate_series(1, 2) where h.type = 'c') h,
  pawl.settle_items(true, h.ids, h.tokens, '{complete,complete}', null, null, null, null, null) s;
select current_setting('lock_timeout') as lock_timeout;
select p.type, p.places, p.place from places p join yard h using (id) order by p.id;

-- A command keeps its priority on every way back into the queue: after a delay, a retry, a release, a postponement, a lost worker and an
-- operator's retry.
create function queued (p_way text) returns table (way text, priority smallint) language plpgsql
  set client_min_messages = error as $$ -- the damaged lease from above fails again
begin
  update pawl.delayed set due = pawl.now() - interval '1 s';
  update pawl.lease set until = pawl.now() - interval '1 s';
  perform pawl.requeue_due(10, 'epoch', 1000);
  return query select p_way, r.priority from pawl.ready r where r.domain_id = pawl.domain_find('urgent');
end
$$;
select pawl.send('urgent', 'a', '1'::jsonb, p_delay => interval '1 hour', p_priority => 7) is not null as sent;
select * from queued('delay');
select s.status from claim_all('urgent') c, pawl.settle(array[c.id], array[c.token], '{retry}', p_errors => '{x}') s;
select * from queued('retry');
select pawl.release(array[c.id], array[c.token]) from claim_all('urgent') c;
select * from queued('release');
select pawl.postpone(array[c.id], array[c.token], array[3600000], 'x') from claim_all('urgent') c;
select * from queued('postponement');
select count(*) from claim_all('urgent');
select * from queued('lost worker');
select s.status from claim_all('urgent') c, pawl.settle(array[c.id], array[c.token], '{fail}', p_errors => '{x}') s;
select d.verdict from pawl.tsq t join pawl.command c on c.id = t.id, pawl.tsq_decide(array[c.command_id], 'retry', 'operator') d where c.domain_id = pawl.domain_find('urgent');
select * from queued('operator');
