-- command_reply.sql - reply_to = command:DOMAIN/TYPE: the outcome of a command becomes another command, once, in the same transaction.
set client_min_messages = warning; -- a start of a type that nothing runs says so
create function pg_temp.take (p_domain text, p_limit integer default 100) returns table (id bigint, token bigint, type text)
  language sql as $$
  select c.id, c.token, c.type
  from pawl.claim(pawl.domain_find(p_domain), p_limit, 60000, array_fill(0::bigint, array[10]), null, 'w') c
$$;
create function pg_temp.settle (p_domain text, p_outcome text, p_result jsonb default null) returns table (status text, woken text)
  language sql as $$
  select s.status, current_setting('pawl.wake', true)
  from (select array_agg(t.id) as ids, array_agg(t.token) as tokens, count(*)::integer as n from pg_temp.take(p_domain) t) t,
       pawl.settle(t.ids, t.tokens, array_fill(p_outcome, array[t.n]), array_fill(p_result, array[t.n]), array_fill('why'::text, array[t.n])) s
$$;
-- What may be named.
select pawl.send('shop', 'x', '{}'::jsonb, p_reply_to => 'command:');
select pawl.send('shop', 'x', '{}'::jsonb, p_reply_to => 'command:accounts');
select pawl.send('shop', 'x', '{}'::jsonb, p_reply_to => 'command:accounts/');
select pawl.send('shop', 'x', '{}'::jsonb, p_reply_to => 'command:/paid');
select pawl.send('shop', 'x', '{}'::jsonb, p_reply_to => 'command:accounts/paid/too');
select pawl.send('shop', 'x', '{}'::jsonb, p_reply_to => 'command:bo oks/paid');
select pawl.send('shop', 'x', '{}'::jsonb, p_reply_to => 'command:' || repeat('d', 64) || '/paid');
select pawl.send('shop', 'x', '{}'::jsonb, p_reply_to => 'command:accounts/' || repeat('t', 101));
select pawl.send('shop', 'x', '{}'::jsonb, p_reply_to => 'command:process:shop/order');
select pawl.send('shop', 'x', '{}'::jsonb, p_reply_to => 'response:7/cancel');
select count(*) from pawl.send('long', '{x}'::text[], '{1}'::jsonb[],
  p_reply_to => array['command:' || repeat('d', 63) || '/' || repeat('t', 100)]);
-- A role that may send and not run processes names no process.
create role pawl_test_reply login;
grant pawl_sender to pawl_test_reply;
set session authorization pawl_test_reply;
select pawl.send('shop', 'x', '{}'::jsonb, p_reply_to => 'response:{"process": 7, "step": "charge"}');
reset session authorization;
revoke pawl_sender from pawl_test_reply;
drop role pawl_test_reply;
-- Completed, rejected and canceled: one command each, with priority, order key and correlation id of the one that ended.
select count(*) from pawl.send('shop', '{charge}'::text[], '{7}'::jsonb[], '{00000000-0000-4000-8000-000000000001}', p_priorities => '{9}',
  p_reply_to => '{command:accounts/charged}', p_correlation_ids => '{order 7}', p_order_keys => '{ann}', p_max_attempts => '{7}');
select * from pg_temp.settle('shop', 'complete', '{"paid": 5}');
select count(*) from pawl.send('shop', '{charge}'::text[], '{8}'::jsonb[], '{00000000-0000-4000-8000-000000000002}',
  p_reply_to => '{command:accounts/charged}');
select * from pg_temp.settle('shop', 'reject');
select count(*) from pawl.send('shop', '{charge}'::text[], '{9}'::jsonb[], '{00000000-0000-4000-8000-000000000003}',
  p_reply_to => '{command:accounts/charged}');
select verdict from pawl.cancel('{00000000-0000-4000-8000-000000000003}');
select c.type, c.payload, c.priority, c.max_attempts, c.order_key, c.correlation_id, c.reply_to, c.batch_id, c.sender,
       c.command_id = pawl.reply_command_id('shop', (c.payload ->> 'command_id')::uuid) as id_follows
from pawl.command c join pawl.domain d on d.id = c.domain_id where d.name = 'accounts' order by c.id;
select pawl.reply_command_id('shop', '00000000-0000-4000-8000-000000000001'), pawl.reply_command_id('desk', '00000000-0000-4000-8000-000000000001');
select count(*) from pg_class where relnamespace = 'pgmq'::regnamespace and relname like '%accounts%';
-- Many at once: outcomes of several targets in one call. Nothing is sent twice when the settle is repeated.
select count(*) from pawl.send('many', array_fill('t'::text, '{500}'), array_fill('1'::jsonb, '{500}'),
  p_reply_to => array(select (array['command:a/x', 'command:b/y', 'queue-c', null])[n % 4 + 1] from generate_series(1, 500) n));
create temp table taken as select * from pg_temp.take('many', 500);
select s.settled, s.again, count(*) from (select array_agg(id) i, array_agg(token) t from taken) t,
  pawl.settle(t.i, t.t, array_fill('complete'::text, '{500}')) s group by 1, 2;
select s.settled, s.again, count(*) from (select array_agg(id) i, array_agg(token) t from taken) t,
  pawl.settle(t.i, t.t, array_fill('complete'::text, '{500}')) s group by 1, 2;
select d.name, c.type, count(*) from pawl.command c join pawl.domain d on d.id = c.domain_id where d.name in ('a', 'b') group by 1, 2 order by 1;
select count(*) from pgmq."q_queue-c";
-- A transaction that is rolled back sends nothing.
select count(*) from pawl.send('undo', '{t}'::text[], '{1}'::jsonb[], p_reply_to => '{command:undone/x}');
begin;
select * from pg_temp.settle('undo', 'complete');
rollback;
select count(*) from pawl.command c join pawl.domain d on d.id = c.domain_id where d.name = 'undone';
-- The id exists as another command: the command ends, its neighbour's reply is sent, and its own is a dead letter.
select count(*) from pawl.send('shop', '{charge,charge}'::text[], '{1,2}'::jsonb[],
  '{00000000-0000-4000-8000-000000000011,00000000-0000-4000-8000-000000000012}', p_reply_to => '{command:desk/done,command:desk/done}');
select count(*) from pawl.send('desk', '{other}'::text[], '{1}'::jsonb[],
  array[pawl.reply_command_id('shop', '00000000-0000-4000-8000-000000000011')]);
select status from pg_temp.settle('shop', 'complete');
select c.type, c.payload ->> 'command_id' as of from pawl.command c join pawl.domain d on d.id = c.domain_id where d.name = 'desk' order by c.id;
select operation_type, operation_key, operation_data ->> 'queue' as target, error_message, error_code from pawl.failed_operations;
select pawl.reply_retry(operation_key) from pawl.failed_operations;
-- A reply that is too large for a payload is a dead letter; the other one is sent.
select count(*) from pawl.send('huge', '{t,t}'::text[], '{1,2}'::jsonb[], p_reply_to => '{command:desk/big,command:desk/big}');
select s.status from (select array_agg(t.id order by t.id) i, array_agg(t.token) k from pg_temp.take('huge') t) t,
  pawl.settle(t.i, t.k, '{complete,complete}', array[to_jsonb(repeat('x', 16777216 - 100)), '1']) s;
select count(*) from pawl.command c where c.type = 'big';
select error_message from pawl.failed_operations where error_message like '%big%';
-- A letter cannot start a process.
select count(*) from pawl.dead_letter_keep('{reply}', '{forged}', array['{"queue": "command:process:shop/order", "message": {}}'::jsonb], '{e}', '{c}', 0);
select pawl.reply_retry('forged');
select pawl.reply_retry('missing');
select pawl.reply_retry(null);
-- The outcome of a process becomes a command, too.
select pawl.start('order', '{}', '00000000-0000-4000-8000-000000000021', p_domain => 'shop', p_reply_to => 'command:accounts/order-ended') is not null;
select verdict from pawl.cancel('{00000000-0000-4000-8000-000000000021}');
select c.payload ->> 'domain' as domain, c.payload ->> 'status' as status from pawl.command c where c.type = 'order-ended';
-- In the order of the key: what waits in the next domain runs in the order in which the first domain ended it.
select count(*) from pawl.send('one', '{t,t,t}'::text[], '{1,2,3}'::jsonb[], p_order_keys => '{k,k,k}',
  p_reply_to => '{command:two/t,command:two/t,command:two/t}');
select * from pg_temp.settle('one', 'complete', '1');
select * from pg_temp.settle('one', 'complete', '2');
select * from pg_temp.settle('one', 'complete', '3');
select c.payload -> 'result' as result, c.order_key from pawl.command c join pawl.domain d on d.id = c.domain_id where d.name = 'two' order by c.id;
select count(*) from pg_temp.take('two');
