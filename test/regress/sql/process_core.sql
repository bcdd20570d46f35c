-- process_core.sql - start, record, patch, suspend, respond, end: each written once, each under the lease.
set client_min_messages = warning; -- a start of a type that nothing runs says so

create function claim_all (p_domain text) returns table (id bigint, token bigint, type text, attempt smallint) language sql as $$
  select c.id, c.token, c.type, c.attempt
  from pawl.claim(pawl.domain_find('process:' || p_domain), 100, 60000, array_fill(0::bigint, array[10]), null, 'w') c
$$;
create function record (p_id bigint, p_token bigint, p_step text, p_result jsonb, p_patch jsonb default null, p_version bigint default null)
  returns table (verdict text, version bigint, state jsonb) language sql as $$
  select w.verdict, w.version, w.state
  from pawl.process_write(array[p_id], array[p_token], array[jsonb_build_object('step', p_step)], array[p_result], null, array[p_patch],
    array[p_version], null, null, null, null, null, null, null, null, null) w
$$;
create function waits (p_for jsonb) returns jsonb language sql as $$
  select jsonb_agg(jsonb_build_object('kind', 'signal', 'name', w.key, 'count', w.value)) from jsonb_each(p_for) w
$$;
create function suspend (p_id bigint, p_token bigint, p_step text, p_for jsonb, p_due timestamptz)
  returns table (verdict text, version bigint, state jsonb) language sql as $$
  select w.verdict, w.version, w.state
  from pawl.process_write(array[p_id], array[p_token], null, null, null, null, null, null, null, '{WAITING_FOR_ASYNC}',
    array[jsonb_build_object('step', p_step)], array[waits(p_for)], array[pawl.micros(p_due)], null, null, null) w
$$;
create function finish (p_id bigint, p_token bigint, p_outcome text, p_result jsonb)
  returns table (verdict text, version bigint, state jsonb) language sql as $$
  select w.verdict, w.version, w.state
  from pawl.process_write(array[p_id], array[p_token], null, null, null, null, null, null, null, null, null, null, null, array[p_outcome], array[p_result], null) w
$$;

-- The same start twice is one process; another state is a refusal.
select ord, is_new, status, refusal
from pawl.send('process:shop', '{order,order}'::text[], '{"{\"n\": 1}","{\"n\": 2}"}'::jsonb[],
  '{018f0000-0000-7000-8000-000000000001,018f0000-0000-7000-8000-000000000002}'::uuid[]);
select ord, is_new, status, refusal
from pawl.send('process:shop', '{order,order}'::text[], '{"{\"n\": 1}","{\"n\": 3}"}'::jsonb[],
  '{018f0000-0000-7000-8000-000000000001,018f0000-0000-7000-8000-000000000002}'::uuid[]);
select state, version, phase, wait from pawl.process order by id;
select pawl.start('order', '7', p_domain => 'shop');
select pawl.start('order', p_domain => 'bad domain');

-- A record is written once, with its patch.
create temp table a as select * from claim_all('shop');
select r.* from a, record(a.id, a.token, 'reserve', '{"r": 1}', '{"reserved": true}') r;
select r.* from a, record(a.id, a.token, 'reserve', '{"r": 2}', '{"reserved": false}') r; -- the same again: its answer was lost
select step, attempt, result, error from pawl.process_step order by id, step;
select state, version from pawl.process order by id;
-- Not under another token.
select r.* from a, record(a.id, a.token + 1, 'ship', '1') r;
select count(*) from pawl.process_step where step = 'ship';
-- A patch that was computed from an earlier state is refused, and says from where to continue.
select r.* from a, record(a.id, a.token, 'count', '1', '{"count": 1}', 1) r;
select r.* from a, record(a.id, a.token, 'count', '1', '{"count": 1}', 2) r;
select r.* from a, record(a.id, a.token, 'count', '1', '{"count": 1}', 2) r;
-- A state that would grow beyond its limit.
select r.verdict from a, record(a.id, a.token, 'huge', '1', jsonb_build_object('x', repeat('x', 1100000))) r;
select count(*) from pawl.process_step where step = 'huge';

-- Suspended: the lease ends, nothing is queued. A response resumes it once; the same key again does not.
select s.* from a, suspend(a.id, a.token, 'paid', '{"payment": 1}', pawl.now() + interval '1 hour') s;
select wait, waits from pawl.process order by id;
select (select count(*) from pawl.lease) as leased, (select count(*) from pawl.delayed) as waiting, (select count(*) from pawl.ready) as queued;
select pawl.signal('018f0000-0000-7000-8000-000000000001', 'payment', '{"paid": 5}', 'k1');
select pawl.signal('018f0000-0000-7000-8000-000000000001', 'payment', '{"paid": 5}', 'k1');
select pawl.signal('018f0000-0000-7000-8000-000000000001', 'payment', '{"paid": 6}', 'k1');
select pawl.signal('018f0000-0000-7000-8000-000000000001', 'payment', '7', 'k2');
select pawl.signal('018f0000-0000-7000-8000-000000000001', 'other');
select pawl.signal('018f0000-0000-7000-8000-000000000009', 'payment');
select state - 'reserved', version, wait from pawl.process order by id;
select name, key, payload, met from pawl.process_response where key like 'k_' order by number;
-- What arrives while it runs keeps it from being suspended for it.
create temp table b as select * from claim_all('shop');
select attempt from b;
select pawl.signal('018f0000-0000-7000-8000-000000000001', 'shipped', '{}', 'k1');
select s.verdict, s.version, s.state ->> 'paid' as paid from b, suspend(b.id, b.token, 'shipping', '{"shipped": 1}', pawl.now() + interval '1 hour') s;
select s.verdict from b, suspend(b.id, b.token, 'shipping', '{"shipped": 2, "lost": 1}', pawl.now() + interval '1 hour') s;
select pawl.signal('018f0000-0000-7000-8000-000000000001', 'shipped', '{}', 'k1'), pawl.signal('018f0000-0000-7000-8000-000000000001', 'lost', '{}', 'k1');

-- A timer: due as a delayed command is.
create temp table c as select * from claim_all('shop');
select s.verdict from c, suspend(c.id, c.token, 'rest', null, pawl.now() + interval '1 hour') s;
update pawl.delayed set due = pawl.now() - interval '1 s' where id in (select id from c);
select moved from pawl.requeue_due(10, 'epoch', 1000);

-- The end: once, and nothing afterwards but patches by responses.
create temp table d as select * from claim_all('shop');
select f.verdict from d, finish(d.id, d.token, 'complete', '{"done": true}') f;
select status, result from pawl.outcome;
select f.verdict from d, finish(d.id, d.token, 'fail', null) f;
select pawl.signal('018f0000-0000-7000-8000-000000000001', 'payment', '{"late": true}', 'k3');
select state ->> 'late' as late, (select status from pawl.outcome o where o.id = p.id) from pawl.process p where p.id = (select id from d);

-- Canceled while it runs: a suspension ends it.
select pawl.start('order', '{}', '018f0000-0000-7000-8000-000000000003', 'shop');
select count(*) from claim_all('shop');
select verdict from pawl.cancel('{018f0000-0000-7000-8000-000000000003}');
select s.verdict from pawl.lease l, suspend(l.id, l.token, 'rest', null, pawl.now() + interval '1 hour') s where l.cancel;
select o.status from pawl.outcome o join pawl.command c on c.id = o.id where c.command_id = '018f0000-0000-7000-8000-000000000003';
-- What people see.
select jsonb_pretty(pawl.process_show('018f0000-0000-7000-8000-000000000001') - '{created_at,ended_at,deadline,steps,responses,audit}'::text[]);
select e ->> 'event' as event from jsonb_array_elements(pawl.process_show('018f0000-0000-7000-8000-000000000001') -> 'audit') e;
select s ->> 'name' as step, s -> 'result' as result from jsonb_array_elements(pawl.process_show('018f0000-0000-7000-8000-000000000001') -> 'steps') s;
select pawl.process_show('018f0000-0000-7000-8000-000000000002') ->> 'status' as status, pawl.process_show('018f0000-0000-7000-8000-000000000002') -> 'waits_for' as waits_for;

-- Definitions: the same again is the same version. A type whose open processes are code is refused.
select version, is_new from pawl.process_define('shop', 'order', '{"type": "order", "domain": "shop", "steps": [{"name": "a", "set": {"a": 1}}]}', null, 'troubleshoot', 'me', '[{"name": "a", "kind": "set"}]');
select version, is_new from pawl.process_define('shop', 'invoice', '{"type": "invoice", "domain": "shop", "steps": [{"name": "a", "set": {"a": 1}}]}', null, 'troubleshoot', 'me', '[{"name": "a", "kind": "set"}]');
select version, is_new from pawl.process_define('shop', 'invoice', '{"type": "invoice", "domain": "shop", "steps": [{"name": "a", "set": {"a": 1}}]}', null, 'troubleshoot', 'me', '[{"name": "a", "kind": "set"}]');
select version, is_new from pawl.process_define('shop', 'invoice', '{"type": "invoice", "domain": "shop", "steps": [{"name": "a", "set": {"a": 2}}]}', 60000, 'fail', 'me', '[{"name": "a", "kind": "set"}]');
select pawl.start('invoice', '{"a": 1}', '018f0000-0000-7000-8000-000000000010', 'shop');
select d.version, p.deadline > pawl.now() as has_deadline, p.deadline_action
from pawl.process p join pawl.command c on c.id = p.id join pawl.process_definition d on d.id = p.definition_id
where c.command_id = '018f0000-0000-7000-8000-000000000010';
select pawl.start('invoice', '{"a": 2}', '018f0000-0000-7000-8000-000000000010', 'shop');

-- Operators: a failed one is tried again from a step; a waiting one is canceled with compensation.
create temp table f as select * from claim_all('shop');
select r.verdict from f, record(f.id, f.token, 'one', '1') r;
select r.verdict from f, record(f.id, f.token, 'two', '2') r;
select r.verdict from f, finish(f.id, f.token, 'fail', null) r;
select process_id, status, step from pawl.process_list('shop', p_status => 'WAITING_FOR_TSQ');
select verdict from pawl.process_retry('{018f0000-0000-7000-8000-000000000010}', '{shop}', 'ann', null, 'three');
select verdict, is_new, operator from pawl.process_retry('{018f0000-0000-7000-8000-000000000010}', '{shop}', 'ann', null, 'two');
-- The same again is a repetition; from another step it is another decision, about a process that is not in the queue any more.
select verdict, is_new from pawl.process_retry('{018f0000-0000-7000-8000-000000000010}', '{shop}', 'ann', null, 'two');
select verdict, is_new from pawl.process_retry('{018f0000-0000-7000-8000-000000000010}', '{shop}', 'ann', null, 'one');
-- With a key it is done once, also if the process is in the queue again.
create temp table k as select * from claim_all('shop');
select r.verdict from k, record(k.id, k.token, 'two', '2') r;
select r.verdict from k, finish(k.id, k.token, 'fail', null) r;
select verdict, is_new, operator from pawl.process_retry('{018f0000-0000-7000-8000-000000000010}', '{shop}', 'ann', null, 'two', '018f0000-0000-7000-8000-0000000000aa');
create temp table l as select * from claim_all('shop');
select r.verdict from l, record(l.id, l.token, 'two', '2') r;
select r.verdict from l, finish(l.id, l.token, 'fail', null) r;
select verdict, is_new, decision, operator from pawl.process_retry('{018f0000-0000-7000-8000-000000000010}', '{shop}', 'ann', null, 'two', '018f0000-0000-7000-8000-0000000000aa');
select count(*) filter (where step = 'two' and aside = 0) as kept, count(*) filter (where step = 'two' and aside > 0) as aside from pawl.process_step where id in (select id from f);
select verdict, is_new from pawl.process_retry('{018f0000-0000-7000-8000-000000000010}', '{shop}', 'ann', null, 'two', '018f0000-0000-7000-8000-0000000000bb');
select pawl.record_text(step, item, undo, kind, aside) from pawl.process_step where id in (select id from f);
select details ->> 'from' as step, jsonb_path_query_array(details, '$.deleted[*].name') as deleted from pawl.event where details ? 'from';
select verdict, is_new, operator from pawl.process_retry('{018f0000-0000-7000-8000-000000000010}', '{shop}', 'ann', null);
create temp table g as select * from claim_all('shop');
select s.verdict from g, suspend(g.id, g.token, 'rest', null, pawl.now() + interval '1 hour') s;
select verdict from pawl.process_compensate('{018f0000-0000-7000-8000-000000000010,018f0000-0000-7000-8000-000000000001,018f0000-0000-7000-8000-000000000099}', null, 'ann', 'no stock');
create temp table h as select * from claim_all('shop');
select count(*) from h;
select s.verdict from h, suspend(h.id, h.token, 'rest', null, pawl.now() + interval '1 hour') s;
select w.verdict, w.is_canceled from h, pawl.process_write(array[h.id], array[h.token], null, null, null, null, null, '{compensating}', null, null,
    null, null, null, null, null, null) w;
select s.verdict from h, suspend(h.id, h.token, 'rest', null, pawl.now() + interval '1 hour') s;
select pawl.process_show('018f0000-0000-7000-8000-000000000010') ->> 'status' as status;

-- One record twice in a call: the first item counts, with its result and its patch; the second one is known.
select command_id as twice from pawl.send('process:twice', 'order', '{}') c (command_id) \gset
select id as twice_id, token as twice_token from claim_all('twice') \gset
select w.ord, w.verdict from pawl.process_write(
  array[:twice_id, :twice_id]::bigint[], array[:twice_token, :twice_token]::bigint[], array['{"step": "s"}', '{"step": "s"}']::jsonb[], '{1,2}', null,
  array['{"n": 1}', '{"n": 2}']::jsonb[], null, null, null, null, null, null, null, null, null, null) w;
select s.result, p.state, p.version from pawl.process_step s join pawl.process p on p.id = s.id where s.id = :twice_id;
-- What is recorded is bounded.
select w.verdict from pawl.process_write(array[:twice_id]::bigint[], array[:twice_token]::bigint[], array['{"step": "t"}']::jsonb[], null,
  array[repeat('x', 16385)], null, null, null, null, null, null, null, null, null, null, null) w;
select w.verdict from pawl.process_write(array[:twice_id]::bigint[], array[:twice_token]::bigint[], array[jsonb_build_object('step', 't', 'input_hash', repeat('x', 201))],
  null, null, null, null, null, null, null, null, null, null, null, null, null) w;
