-- process_audit.sql - what the audit of a process has, and lists by status that read what has the status.
set client_min_messages = warning; -- a start of a type that nothing runs says so

create function claim_all (p_domain text) returns table (id bigint, token bigint) language sql as $$
  select c.id, c.token from pawl.claim(pawl.domain_find('process:' || p_domain), 100, 60000, array_fill(0::bigint, array[10]), null, 'w') c
$$;
create function record (p_id bigint, p_token bigint, p_step text, p_result jsonb default null, p_error text default null, p_attempt integer default 1)
  returns text language sql as $$
  select w.verdict
  from pawl.process_write(array[p_id], array[p_token], array[jsonb_build_object('step', p_step, 'attempt', p_attempt)], array[p_result],
    array[p_error], null, null, null, null, null, null, null, null, null, null, null) w
$$;
create function began (p_id bigint, p_token bigint, p_step text) returns text language sql as $$
  select w.verdict
  from pawl.process_write(array[p_id], array[p_token], array[jsonb_build_object('step', p_step, 'kind', 'begin')], '{null}', null, null, null, null,
    null, null, null, null, null, null, null, null) w
$$;
create function undone (p_id bigint, p_token bigint, p_step text) returns text language sql as $$
  select w.verdict
  from pawl.process_write(array[p_id], array[p_token], array[jsonb_build_object('step', p_step, 'undo', true)], '{null}', null, null, null, null,
    null, null, null, null, null, null, null, null) w
$$;
create function phase (p_id bigint, p_token bigint) returns text language sql as $$
  select w.verdict
  from pawl.process_write(array[p_id], array[p_token], null, null, null, null, null, '{compensating}', null, null, null, null, null, null, null,
    '{"canceled by an operator"}') w
$$;
create function waits (p_for jsonb) returns jsonb language sql as $$
  select case jsonb_typeof(p_for) when 'array' then p_for else (select jsonb_agg(jsonb_build_object('kind', 'signal', 'name', w.key, 'count', w.value)) from jsonb_each(case jsonb_typeof(p_for) when 'object' then p_for end) w) end
$$;
create function suspend (p_id bigint, p_token bigint, p_step text, p_wait text, p_for jsonb) returns text language sql as $$
  select w.verdict
  from pawl.process_write(array[p_id], array[p_token], null, null, null, null, null, null, null, array[p_wait], array[jsonb_build_object('step',
    p_step)], array[waits(p_for)], array[pawl.micros(pawl.now() + interval '1 hour')], null, null, null) w
$$;
create function due (p_id bigint) returns bigint language sql as $$
  update pawl.delayed set due = pawl.now() - interval '1 s' where id = p_id;
  select moved from pawl.requeue_due(10, 'epoch', 1000);
$$;
create function audit (p_process uuid) returns table (event text, actor text, attempt text, details jsonb) language sql as $$
  select e ->> 'event', e ->> 'actor', e ->> 'attempt', e -> 'details' from jsonb_array_elements(pawl.process_show(p_process) -> 'audit') e
$$;

-- A wait for two responses, of which the second resumes it; a sleep that ends; a step that is tried again; an operator's cancellation, and a compensation.
select pawl.start('order', '{}', '018f0000-0000-7000-8000-000000000001', 'shop');
create temp table a as select * from claim_all('shop');
select began(a.id, a.token, 'votes'), suspend(a.id, a.token, 'votes', 'WAITING_FOR_ASYNC', '{"vote": 2}') from a;
select pawl.signal('018f0000-0000-7000-8000-000000000001', 'vote', '{"a": 1}', 'k1', p_actor => 'ann');
select pawl.signal('018f0000-0000-7000-8000-000000000001', 'note', '{}', 'k1', p_actor => 'ann');
select pawl.signal('018f0000-0000-7000-8000-000000000001', 'vote', '{"b": 1}', 'k2', p_actor => 'bob');
select pawl.signal('018f0000-0000-7000-8000-000000000001', 'vote', '{"b": 1}', 'k2', p_actor => 'bob');
select kind, name, key, met, resumed from pawl.process_response order by number;
create temp table b as select * from claim_all('shop');
select record(b.id, b.token, 'votes', '[]'), began(b.id, b.token, 'rest'), suspend(b.id, b.token, 'rest', 'WAITING_FOR_ASYNC', null) from b;
select due(id) from b;
create temp table c as select * from claim_all('shop');
select record(c.id, c.token, 'rest', 'null'), record(c.id, c.token, 'ship', null, 'no carrier'), suspend(c.id, c.token, 'ship', 'WAITING_FOR_RETRY', null) from c;
select due(id) from c;
create temp table d as select * from claim_all('shop');
select record(d.id, d.token, 'ship', '1', null, 2), suspend(d.id, d.token, 'paid', 'WAITING_FOR_ASYNC', '{"paid": 1}') from d;
select verdict, is_new from pawl.process_compensate('{018f0000-0000-7000-8000-000000000001}', null, 'carl', 'a mistake');
create temp table e as select * from claim_all('shop');
select phase(e.id, e.token), undone(e.id, e.token, 'ship') from e;
select * from audit('018f0000-0000-7000-8000-000000000001');
-- No row is written for it but those of the responses and records.
select event from pawl.event where id = (select id from a) order by at;
-- A response that arrives while the wait begins: the process is not suspended, so nothing resumes it.
select pawl.start('order', '{}', '018f0000-0000-7000-8000-000000000003', 'shop');
create temp table met as select * from claim_all('shop');
select began(m.id, m.token, 'go') from met m;
select pawl.signal('018f0000-0000-7000-8000-000000000003', 'go', '{"a": 1}', 'k1', p_actor => 'ann');
select suspend(m.id, m.token, 'go', 'WAITING_FOR_ASYNC', '{"go": 1}') from met m;
select record(m.id, m.token, 'go', '{"a": 1}') from met m;
select * from audit('018f0000-0000-7000-8000-000000000003');
-- Waits without a record of their begin: a command, and a wait that only suspends the process. Where a record
-- comes with the command, before or after it, the wait is one.
select pawl.start('waits', '{}', '018f0000-0000-7000-8000-000000000011', 'waits');
create temp table waits as select * from claim_all('waits');
create function send (p_id bigint, p_domain text, p_step text) returns bigint language sql as $$
  select count(pawl.send(p_domain, 'act', p_reply_to => format('response:{"process": %s, "step": "%s"}', p_id, p_step)))
$$;
create function reply (p_id bigint, p_step text, p_key text) returns text language sql as $$
  select r.verdict from pawl.process_respond(array[p_id], array[p_step], array[p_key], array['{"status": "COMPLETED"}'::jsonb], 'reply', 'reply') r
$$;
select record(id, token, 'a', '1'), send(id, 'bank', 'charge'), suspend(id, token, 'charge', 'WAITING_FOR_REPLY', '[{"kind": "reply", "name": "charge", "count": 1}]') from waits;
select reply(id, 'charge', 'k1') from waits;
update waits w set token = c.token from claim_all('waits') c where c.id = w.id;
select send(id, 'bank', 'ship'), began(id, token, 'ship'), began(id, token, 'mail'), send(id, 'bank', 'mail'),
       suspend(id, token, 'ship', 'WAITING_FOR_REPLY', '[{"kind": "reply", "name": "ship", "count": 1}, {"kind": "reply", "name": "mail", "count": 1}]')
from waits;
select reply(id, 'mail', 'k2') from waits;
update waits w set token = c.token from claim_all('waits') c where c.id = w.id;
select suspend(id, token, 'go', 'WAITING_FOR_ASYNC', '{"go": 1}') from waits;
select pawl.signal('018f0000-0000-7000-8000-000000000011', 'go', '{}', 'k3', p_actor => 'ann');
update waits w set token = c.token from claim_all('waits') c where c.id = w.id;
select suspend(id, token, 'kid', 'WAITING_FOR_ASYNC', '{"kid": 1}') from waits;
select event, details from audit('018f0000-0000-7000-8000-000000000011') where event in ('WAITING', 'RESUMED');
-- A process that is canceled is shown in the step that it waited in, and not in the one before.
select verdict from pawl.command_cancel('{018f0000-0000-7000-8000-000000000011}', null, 'ann');
select step, status from pawl.process_list('waits', p_step => 'kid');
select pawl.process_show('018f0000-0000-7000-8000-000000000011') ->> 'step' as step;
select event, details from audit('018f0000-0000-7000-8000-000000000011') where event in ('WAITING', 'CANCELED');
-- A batch of responses: one of them resumed it.
select pawl.start('order', '{}', '018f0000-0000-7000-8000-000000000002', 'shop');
create temp table f as select * from claim_all('shop');
select suspend(f.id, f.token, 'two', 'WAITING_FOR_ASYNC', '{"x": 2}') from f;
select r.ord, r.verdict from f, pawl.process_respond(array[f.id, f.id, f.id, f.id], '{x,x,x,x}', '{k1,k1,k2,k3}', '{1,1,2,3}', 'ann') r;
select kind, name, key, payload, met, resumed from pawl.process_response where id in (select id from f) order by number;
select version, wait, waits, response_count from pawl.process where id in (select id from f);

-- Lists by status read rows of that status, and not the processes that are newer.
select count(pawl.start('old', p_domain => 'list')) from generate_series(1, 7);
create temp table g as select c.*, row_number() over (order by c.id) as n from claim_all('list') c;
select w.verdict from g, pawl.process_write(array[g.id], array[g.token], null, null, null, null, null, null, null, null, null, null, null,
    array[case n when 1 then 'fail' when 2 then 'reject' else 'complete' end], null, array['why']) w where n <= 3 order by n;
select suspend(id, token, 'w', case n when 4 then 'WAITING_FOR_ASYNC' else 'WAITING_FOR_RETRY' end, null) from g where n in (4, 5);
select w.verdict from g, pawl.process_write(array[g.id], array[g.token], null, null, null, null, null, array['compensating'], null, null, null, null,
    null, null, null, null) w where n = 6;
select verdict from pawl.cancel(array(select c.command_id from g join pawl.command c on c.id = g.id where n = 5));
select count(pawl.start('young', p_domain => 'list')) from generate_series(1, 50);
select w.verdict, count(*) from claim_all('list') c, pawl.process_write(array[c.id], array[c.token], null, null, null, null, null, null, null, null,
    null, null, null, '{complete}', null, null) w group by 1;
select s.status, l.type, l.status = s.status as is_it, l.id is null and l.last is not null as has_more
from unnest('{WAITING_FOR_TSQ,FAILED,CANCELED,COMPENSATING,WAITING_FOR_ASYNC,WAITING_FOR_RETRY,IN_PROGRESS}'::text[]) s (status)
left join lateral pawl.process_list('list', p_status => s.status, p_looks => 3) l on true;
select s.status, l.type, l.status = s.status as is_it, l.id is null and l.last is not null as has_more
from unnest('{WAITING_FOR_TSQ,FAILED,CANCELED,COMPENSATING,WAITING_FOR_ASYNC}'::text[]) s (status)
left join lateral pawl.process_list(null, 'old', s.status, p_looks => 5) l on true;
select count(pawl.start('new', p_domain => 'list')) from generate_series(1, 3);
select type, status from pawl.process_list('list', p_status => 'PENDING', p_looks => 5);
select count(*) from pawl.process_list('nowhere', p_status => 'PENDING');
-- By pages, each continues where the one before ended.
with recursive page (last, n) as (
  select 9223372036854775807, 0
  union all
  select l.last, n + (l.id is not null)::integer from page p, pawl.process_list('list', p_type => 'old', p_before => p.last, p_limit => 1, p_looks => 10) l)
select max(n) as found from page;

-- The error of a canceled process names the operator and the reason.
select count(pawl.start('named', p_process_id => ('018f0000-0000-7000-8000-00000000009' || n)::uuid, p_domain => 'named')) from generate_series(1, 2) n;
create temp table h as select c.*, row_number() over (order by c.id) as n from claim_all('named') c;
select record(h.id, h.token, 'a', '1') from h where n = 1;
select verdict from pawl.process_compensate('{018f0000-0000-7000-8000-000000000091}', null, 'carl', 'customer called');
select w.verdict from h, pawl.process_write(array[h.id], array[h.token], null, null, null, null, null, array['compensated'], null, null, null, null,
    null, array['reject'], null, array['canceled by an operator']) w where n = 1;
select verdict from pawl.command_cancel('{018f0000-0000-7000-8000-000000000092}', null, 'ann');
select record(h.id, h.token, 'a', '1') from h where n = 2;
select status, error from pawl.process_list('named');
select pawl.process_show('018f0000-0000-7000-8000-000000000091') ->> 'error' as error;
