-- process_edges.sql - several writes of one process in one call, records that are there already, guessed tokens, outcomes too large for a step,
-- and a state that is full.

create function claim_all (p_domain text) returns table (id bigint, token bigint) language sql as $$
  select c.id, c.token
  from pawl.claim(pawl.domain_find('process:' || p_domain), 100, 60000, array_fill(0::bigint, array[10]), null, 'w') c
$$;
select pawl.start('order', '{"n": 1}', '018f0000-0000-7000-8000-000000000001', 'shop');
create temp table a as select * from claim_all('shop');

-- Two patches of one process in one call, both computed from version 1: the second is refused. One that depends on nothing is written.
select w.ord, w.verdict, w.version, w.state
from a, pawl.process_write(array[a.id, a.id, a.id], array[a.token, a.token, a.token], '{x,y,z}', '{1,1,1}', null, '{1,1,1}', null, null,
  '{"{\"x\": 1}","{\"y\": 1}","{\"z\": 1}"}', '{1,1,0}', null, null, null, null, null, null, null, null) w;
select name, attempt from pawl.process_step order by name;
-- A record that is there: the transaction that wants to write it again must know.
select w.ord, w.verdict
from a, pawl.process_write(array[a.id, a.id], array[a.token, a.token], '{x,w}', '{1,1}', null, '{2,2}', null, null,
  null, null, null, null, null, null, null, null, null, null) w;
select name, result from pawl.process_step order by name;
-- Of several tokens of one process only the greatest is tried, and it is none of the others.
select w.verdict, count(*)
from a, pawl.process_write(
  array(select a.id from generate_series(-5, 5)), array(select a.token + n from generate_series(-5, 5) n), array_fill('forged'::text, '{11}'),
  array_fill(1, '{11}'), null, null, null, null, null, null, null, null, null, null, null, null, null, null) w
group by 1;
select w.verdict from a, pawl.process_write(
  array(select a.id from generate_series(1, 10001)), array(select a.token from generate_series(1, 10001)),
  null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null) w limit 1;

-- Patches of one call are measured together, and compressed values as text.
select w.ord, w.verdict
from a, pawl.process_write(array[a.id, a.id], array[a.token, a.token], '{big1,big2}', '{1,1}', null, '{1,1}', null, null,
  array[jsonb_build_object('b1', repeat('x', 600000)), jsonb_build_object('b2', repeat('x', 600000))], '{0,0}',
  null, null, null, null, null, null, null, null) w;
select r.ord, r.verdict
from a, pawl.process_respond(array[a.id], '{more}', '{k}', array[to_jsonb(repeat('x', 500000))], 'test') r;

-- A reply is stored although the state is full, and one that is larger than a result may be says so.
select pawl.send('work', 'one', '{}', '018f0000-0000-7000-8000-00000000000a', p_reply_to => format('response:%s/$reply.c', a.id)) from a;
select s.status from pawl.claim(pawl.domain_find('work'), 1, 60000, array_fill(0::bigint, array[10]), null, 'w') c,
  pawl.settle(array[c.id], array[c.token], '{complete}', array[to_jsonb(repeat('a', 1048577))], null, null) s;
select name, left(payload::text, 300) from pawl.process_response;
select count(*) from pawl.failed_operations;
-- Canceled with compensation, although the state is full.
select verdict, is_new, decision from pawl.process_compensate('{018f0000-0000-7000-8000-000000000001}', p_operator => 'op');
select verdict, is_new, decision from pawl.process_compensate('{018f0000-0000-7000-8000-000000000001}', p_operator => 'op');
select state ? '$cancel' from pawl.process;
