-- process_edges.sql - several writes of one process in one call, records that are there already, guessed tokens, outcomes too large for a step,
-- and a state that is full.
set client_min_messages = warning; -- a start of a type that nothing runs says so

create function claim_all (p_domain text) returns table (id bigint, token bigint) language sql as $$
  select c.id, c.token
  from pawl.claim(pawl.domain_find('process:' || p_domain), 100, 60000, array_fill(0::bigint, array[10]), null, 'w') c
$$;
select pawl.start('order', '{"n": 1}', '018f0000-0000-7000-8000-000000000001', 'shop');
create temp table a as select * from claim_all('shop');

-- Two patches of one process in one call, both computed from version 1: the second is refused. One that depends on nothing is written.
select w.ord, w.verdict, w.version, w.state
from a, pawl.process_write(array[a.id, a.id, a.id], array[a.token, a.token, a.token],
    '{"{\"step\": \"x\"}","{\"step\": \"y\"}","{\"step\": \"z\"}"}', '{1,1,1}', null, '{"{\"x\": 1}","{\"y\": 1}","{\"z\": 1}"}',
    '{1,1,0}', null, null, null, null, null, null, null, null, null) w;
select step, attempt from pawl.process_step order by step;
-- A record that is there: the transaction that wants to write it again must know.
select w.ord, w.verdict
from a, pawl.process_write(array[a.id, a.id], array[a.token, a.token], '{"{\"step\": \"x\"}","{\"step\": \"w\"}"}', '{2,2}', null, null, null, null,
    null, null, null, null, null, null, null, null) w;
select step, result from pawl.process_step order by step;
-- Tokens that are not the lease's write nothing.
select w.verdict, count(*)
from a, pawl.process_write(array(select a.id from generate_series(1, 11)), array(select a.token + n from generate_series(1, 11) n),
    array_fill('{"step": "forged"}'::jsonb, '{11}'), null, null, null, null, null, null, null, null, null, null, null, null, null) w
group by 1;
select w.verdict from a, pawl.process_write(array(select a.id from generate_series(1, 10001)), array(select a.token from generate_series(1, 10001)),
    null, null, null, null, null, null, null, null, null, null, null, null, null, null) w limit 1;

-- Patches of one call are measured together, and compressed values as text.
select w.ord, w.verdict
from a, pawl.process_write(array[a.id, a.id], array[a.token, a.token], '{"{\"step\": \"big1\"}","{\"step\": \"big2\"}"}', '{1,1}', null,
    array[jsonb_build_object('b1', repeat('x', 600000)), jsonb_build_object('b2', repeat('x', 600000))], '{0,0}', null, null, null, null,
    null, null, null, null, null) w;
select r.ord, r.verdict
from a, pawl.process_respond(array[a.id], '{more}', '{k}', array[to_jsonb(repeat('x', 500000))], 'test') r;

-- A reply is stored although the state is full, and one that is larger than a result may be says so.
select pawl.send('work', 'one', '{}', '018f0000-0000-7000-8000-00000000000a', p_reply_to => format('response:{"process": %s, "step": "c"}', a.id)) from a;
select s.status from pawl.claim(pawl.domain_find('work'), 1, 60000, array_fill(0::bigint, array[10]), null, 'w') c,
  pawl.settle(array[c.id], array[c.token], '{complete}', array[to_jsonb(repeat('a', 1048577))], null, null) s;
select kind, name, left(payload::text, 300) from pawl.process_response;
select count(*) from pawl.failed_operations;
-- Canceled with compensation, although the state is full.
select verdict, is_new, decision from pawl.process_compensate('{018f0000-0000-7000-8000-000000000001}', p_operator => 'op');
select verdict, is_new, decision from pawl.process_compensate('{018f0000-0000-7000-8000-000000000001}', p_operator => 'op');
select state ? '$cancel' from pawl.process;

-- The first definition of a type reads processes without a definition only, however many others wait.
select version from pawl.process_define('many', 'waits', '{"type": "waits", "domain": "many", "steps": [{"name": "a", "set": {"a": 1}}]}', null, 'troubleshoot', 'test', '[{"name": "a", "kind": "set"}]');
select count(pawl.start('waits', p_domain => 'many')) from generate_series(1, 300);
select count(pawl.start('code', p_process_id => md5('code' || n)::uuid, p_domain => 'many')) from generate_series(1, 2) n;
create function reads () returns bigint language sql as $$
  select sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0))
  from pg_stat_xact_user_tables where schemaname = 'pawl' and relname in ('process', 'command', 'ready', 'delayed')
$$;
begin;
create temp table before as select coalesce(reads(), 0) as reads; -- of transactions before, which were not reported yet
select version from pawl.process_define('many', 'first', '{"type": "first", "domain": "many", "steps": [{"name": "a", "set": {"a": 1}}]}', null, 'troubleshoot', 'test', '[{"name": "a", "kind": "set"}]');
select coalesce(reads(), 0) - b.reads < 50 as few from before b;
commit;
insert into pawl.process_step (id, step, attempt, started_at, ended_at) select c.id, 'a', 1, now(), now() from pawl.command c where c.command_id = md5('code1')::uuid;
select version from pawl.process_define('many', 'code', '{"type": "code", "domain": "many", "steps": [{"name": "a", "set": {"a": 1}}]}', null, 'troubleshoot', 'test', '[{"name": "a", "kind": "set"}]');
-- Nor does it read processes of code that have ended, however many there are.
select count(pawl.start('code', p_process_id => md5('ended' || n)::uuid, p_domain => 'ended')) from generate_series(1, 301) n;
insert into pawl.process_step (id, step, attempt, started_at, ended_at)
select p.id, 'a', 1, now(), now() from pawl.process p join pawl.command c on c.id = p.id where c.type = 'code' and not exists (select from pawl.process_step s where s.id = p.id);
select count(cardinality(pawl.finish(array[r.id], 'COMPLETED', 'OPERATOR_COMPLETE', null, null, null)))
from pawl.ready r join pawl.domain_name n on n.id = r.domain_id and n.name = 'process:ended'
where r.id <> (select max(m.id) from pawl.ready m);
begin;
truncate before;
insert into before select coalesce(reads(), 0);
select version from pawl.process_define('ended', 'first', '{"type": "first", "domain": "ended", "steps": [{"name": "a", "set": {"a": 1}}]}', null, 'troubleshoot', 'test', '[{"name": "a", "kind": "set"}]');
select coalesce(reads(), 0) - b.reads < 200 as few from before b;
commit;
select version from pawl.process_define('ended', 'code', '{"type": "code", "domain": "ended", "steps": [{"name": "a", "set": {"a": 1}}]}', null, 'troubleshoot', 'test', '[{"name": "a", "kind": "set"}]');
