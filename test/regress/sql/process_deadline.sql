-- process_deadline.sql - deadlines that a start gives: what is refused, and what happens to a process in code when its deadline passes.
set client_min_messages = warning; -- a start of a type that nothing runs says so

\ir ../fake_clock.sql
insert into pawl.fake_clock (at) values ('2026-01-01 00:00 UTC');
create function process (p_number integer) returns uuid language sql as $$
  select ('018f0000-0000-7000-8000-0000000000' || lpad(p_number::text, 2, '0'))::uuid
$$;
create function number (p_number integer) returns bigint language sql as $$ select pawl.process_number(process(p_number)) $$;
create function start (p_number integer, p_action text) returns boolean language sql as $$
  select pawl.start('order', '{}', process(p_number), 'shop', p_deadline => '1 min', p_on_deadline => p_action) = process(p_number)
$$;
create function claim_one () returns table (id bigint, token bigint) language sql as $$
  select c.id, c.token from pawl.claim(pawl.domain_find('process:shop'), 1, 600000, array_fill(0::bigint, array[10]), null, 'w') c
$$;
create function record (p_id bigint, p_token bigint, p_step text) returns text language sql as $$
  select w.verdict || case when w.is_canceled then ' canceled' else '' end
  from pawl.process_write(array[p_id], array[p_token], array[jsonb_build_object('step', p_step)], '{1}', null, null, null, null, null, null, null,
    null, null, null, null, null) w
$$;
create function suspend (p_id bigint, p_token bigint) returns text language sql as $$
  select w.verdict
  from pawl.process_write(array[p_id], array[p_token], '{"{\"step\": \"w\", \"kind\": \"begin\"}"}', '{1}', null, null, null, null, null,
    '{WAITING_FOR_ASYNC}', '{"{\"step\": \"w\"}"}', array['[{"kind": "signal", "name": "go", "count": 1}]'::jsonb],
    array[pawl.micros(pawl.now() + interval '1 day')], null, null, null) w
$$;
create function complete (p_id bigint, p_token bigint) returns text language sql as $$
  select w.verdict
  from pawl.process_write(array[p_id], array[p_token], '{"{\"step\": \"last\"}"}', '{1}', null, null, null, null, null, null, null, null, null,
    '{complete}', '{"\"done\""}', null) w
$$;
create function due () returns bigint language sql as $$
  select count(*) from pawl.process p where p.deadline_due <= pawl.now()
$$;
create function pass () returns bigint language plpgsql as $$ -- how many were decided about
declare
  v_due bigint;
begin
  update pawl.fake_clock set at = at + interval '61 s';
  v_due := due();
  while pawl.attached_due(100, 1000) = 0 loop -- a call ends after half a second, which a slow machine may need more than once
  end loop;
  return v_due - due();
end
$$;
create view shown as
  select right(c.command_id::text, 2) as process, pawl.process_status(p.id) as status, pawl.process_error_shown(p.id, pawl.process_status(p.id)) as error,
         (select string_agg(e.event || coalesce(' ' || nullif(e.details - 'deadline' - 'reason' - 'error', '{}')::text, ''), ', ' order by e.at, e.rank, e.place)
          from pawl.process_events(p.id) e where e.event not in ('SENT', 'RECEIVED')) as events,
         p.deadline_due is null as decided
  from pawl.process p join pawl.command c on c.id = p.id
  where starts_with(c.command_id::text, '018f0000'); -- the ends of random ids may be equal

-- What is refused.
select pawl.start('order', '{}', p_deadline => '0 s');
select pawl.start('order', '{}', p_deadline => '11 years');
select pawl.start('order', '{}', p_on_deadline => 'fail');
select pawl.start('order', '{}', p_deadline => '1 h', p_on_deadline => 'stop');
select pawl.start('order', '{}', p_deadline => '1 h', p_deadline_at => '2026-01-01 01:00 UTC');
select pawl.start('order', '{}', p_deadline_at => 'infinity');
select refusal from pawl.send_items(false, 'mail', '{a}', '{1}', null, null, null, null, null, null, null, null, p_attached => '{1 ms}');
select refusal from pawl.send_items(false, 'process:shop', '{a}', '{"{}"}', null, null, null, null, null, null, null, null, p_attached => '{1 s}');
select refusal from pawl.send_items(false, 'process:shop', '{a}', '{"{}"}', null, null, null, null, null, null, null, null, p_attached => '{1 ms,2 ms}');
select refusal from pawl.send_items(false, 'process:shop', '{a}', '{"{}"}', null, null, null, null, null, null, null, null, p_attached => '{"2026-02-30T00:00:00Z"}');

-- The same start again is the same process; another deadline is refused, as every other field is.
select start(1, 'fail'), start(1, 'fail');
select start(1, null);
select pawl.start('order', '{}', process(1), 'shop');
select pawl.start('order', '{}', process(1), 'shop', p_deadline => '2 min', p_on_deadline => 'fail');
select pawl.start('order', '{}', process(1), 'shop', p_deadline_at => '2026-01-01 00:01 UTC', p_on_deadline => 'fail');
select pawl.start('order', '{}', process(2), 'shop', p_deadline_at => '2026-01-01 01:01+01', p_on_deadline => 'fail') is not null as started;
select pawl.start('order', '{}', process(2), 'shop', p_deadline_at => '2026-01-01 00:01 UTC', p_on_deadline => 'fail') is not null as again;
update pawl.fake_clock set at = at + interval '1 s';
select start(1, 'fail') as later;
select ord, is_new, refusal from pawl.send_items(false, 'process:shop', '{order,order,order}', '{"{}","{}","{}"}',
  array[process(3), process(3), process(4)], null, null, '{10,10,10}', null, null, null, null, p_attached => '{"60000 ms","1 ms",null}') order by ord;
select right(c.command_id::text, 2) as process, p.deadline at time zone 'UTC' as deadline, p.deadline_given, p.deadline_action
from pawl.process p join pawl.command c on c.id = p.id order by 1;
select pawl.process_show(process(3)) -> 'on_deadline' as default_action, pawl.process_show(process(4)) -> 'on_deadline' as none;
select verdict from pawl.cancel(array[process(1), process(2), process(3), process(4)]);

-- Nothing has begun, and no worker is there.
select start(11, 'fail'), start(12, 'troubleshoot'), start(13, 'compensate');
select pass();
select * from shown where process in ('01', '11', '12', '13') order by 1;
select pass() as nothing_left;

-- While it waits. The wait is over at once.
select start(21, 'fail');
create temp table w1 as select * from claim_one();
select suspend(id, token) from w1;
select start(22, 'troubleshoot');
create temp table w2 as select * from claim_one();
select suspend(id, token) from w2;
select start(23, 'compensate');
create temp table w3 as select * from claim_one();
select suspend(id, token) from w3;
select pass();
select * from shown where process between '21' and '23' order by 1;
-- What comes later is late, and the audit has both.
select pawl.signal(process(21), 'go', '{}', 'k'), pawl.signal(process(22), 'go', '{}', 'k');

-- While it runs: code loses its lease, or learns of it with its next record.
create temp table w4 as select * from claim_one(); -- 23, resumed
select record(id, token, 'refused') from w4;
select start(31, 'fail');
create temp table r1 as select * from claim_one();
select start(32, 'troubleshoot');
create temp table r2 as select * from claim_one();
select start(33, 'compensate');
create temp table r3 as select * from claim_one();
select record(id, token, 'one') from r3;
select pass();
select * from shown where process between '31' and '33' order by 1;
select record(id, token, 'late') from r1;
select record(id, token, 'late') from r2;
select verdict from r1, pawl.extend(array[r1.id], array[r1.token], 60000);
select record(id, token, 'two') from r3;
select suspend(id, token) as does_not_wait from r3;
-- It cannot be canceled without its compensation any more.
select verdict from pawl.command_cancel(array[process(33)]);
select verdict, is_new, decision, operator from pawl.process_compensate(array[process(33)], null, 'ann');

-- The end comes after the deadline, before it was decided about.
select start(41, 'fail');
create temp table e1 as select * from claim_one();
select start(42, 'troubleshoot');
create temp table e2 as select * from claim_one();
select start(43, 'compensate');
create temp table e3 as select * from claim_one();
select start(44, 'fail');
create temp table e4 as select * from claim_one();
select complete(id, token) as in_time from e4;
update pawl.fake_clock set at = at + interval '61 s';
select complete(id, token) from e1;
select complete(id, token) from e2;
select complete(id, token) from e3;
select * from shown where process between '41' and '44' order by 1;
select pawl.process_deadlines_pass(100, pawl.now()) as none_is_left;
select decided from shown where process between '41' and '44' order by process;
-- An operator who has it tried again means it.
select verdict from pawl.process_retry(array[process(42), process(43), process(22)]) order by ord;
create temp table e5 as select * from claim_one();
create temp table e6 as select * from claim_one();
create temp table e7 as select * from claim_one();
select complete(id, token) from (table e5 union all table e6 union all table e7) e;
select process, status from shown where process in ('22', '42', '43') order by 1;

-- Decided before the function has ended.
select start(45, 'compensate');
create temp table e8 as select * from claim_one();
select pass();
select complete(id, token) from e8;
select status, error from shown where process = '45';
select verdict from pawl.process_retry(array[process(45)]);
create temp table e9 as select * from claim_one();
select complete(id, token) from e9;
select status, events from shown where process = '45';

-- In the troubleshooting queue, canceled, or compensated before: nothing happens.
select start(51, 'fail');
create temp table n1 as select * from claim_one();
select w.verdict from n1, pawl.process_write(array[n1.id], array[n1.token], null, null, null, null, null, null, null, null, null, null, null,
    '{fail}', null, '{"broken"}') w;
select start(52, 'fail');
create temp table n2 as select * from claim_one();
select record(id, token, 'one') from n2;
select verdict from pawl.process_compensate(array[process(52)], null, 'ann');
select start(53, 'fail');
create temp table n3 as select * from claim_one();
select verdict from pawl.cancel(array[process(53)], p_operator => 'ann');
select pass();
select * from shown where process between '51' and '53' order by 1;
select complete(id, token) as code_decides_by_itself from n2;

-- A child that fails by its deadline answers its process, and what a process has sent is canceled.
select pawl.start('parent', '{}', process(61), 'shop') is not null as started;
create temp table p1 as select * from claim_one();
select record(id, token, 'one') from p1;
select s.refusal from p1, pawl.send_items(false, 'process:kids', '{kid}', '{"{}"}', array[process(62)], null, null, '{10}',
  array[format('response:{"process": %s, "step": "kid"}', p1.id)], null, null, null, p_attached => '{"60000 ms, fail"}') s;
select w.verdict from p1, pawl.process_write(array[p1.id], array[p1.token], null, null, null, null, null, null, null, '{WAITING_FOR_REPLY}',
    '{"{\"step\": \"kid\"}"}', array['[{"kind": "reply", "name": "kid", "count": 1}]'::jsonb],
    array[pawl.micros(pawl.now() + interval '1 day')], null, null, null) w;
select pass();
select * from shown where process between '61' and '62' order by 1;
select r.payload ->> 'status' as status, r.payload ->> 'error' as error from pawl.process_response r where r.id = number(61);

-- A definition: its deadline is replaced, and an action that is not given is that of the file.
select version from pawl.process_define('shop', 'defined', '{"type": "defined", "domain": "shop", "deadline": "1h", "on_deadline": "fail", "steps": [{"name": "w", "wait": {"response": "go"}}]}', 3600000, 'fail', 'ann', '[{"name": "w", "kind": "wait", "response": "go", "responses": 1}]');
select version from pawl.process_define('shop', 'saga', '{"type": "saga", "domain": "shop", "steps": [{"name": "a", "exec": "true", "compensate": {"exec": "true"}}]}', null, 'compensate', 'ann', '[{"name": "a", "kind": "exec", "acts": true, "is_compensated": true}]');
select pawl.start('defined', '{}', process(71), 'shop') is not null and
       pawl.start('defined', '{}', process(72), 'shop', p_deadline => '1 min') is not null and
       pawl.start('defined', '{}', process(73), 'shop', p_deadline => '1 min', p_on_deadline => 'compensate') is not null and
       pawl.start('saga', '{}', process(74), 'shop', p_deadline => '1 min') is not null as started;
select right(c.command_id::text, 2) as process, p.deadline - pawl.now() as left, p.deadline_action
from pawl.process p join pawl.command c on c.id = p.id where p.id in (number(71), number(72), number(73), number(74)) order by 1;
select count(*) as run from pawl.claim(pawl.domain_find('process:shop'), 2, 600000, array_fill(0::bigint, array[10]), '{defined}', 'w') c;
select pass() as those_that_do_not_run;
select process, status, decided from shown where process between '71' and '74' order by 1;

-- Requeuers decide, and know when the next deadline passes.
select start(81, 'fail');
update pawl.fake_clock set at = at + interval '61 s';
select next_ms, moved, pawl.attached_is_due(looked) from pawl.requeue_due(100, '-infinity', 5000);
select pawl.attached_due(100, 5000) as next_ms;
select status from shown where process = '81';
select start(82, 'fail');
update pawl.fake_clock set at = at + interval '58 s';
select next_ms as until_the_deadline from pawl.requeue_due(100, '-infinity', 5000);

-- Processes that cannot be decided about, here because they wait for an order key, do not hold up another that is due after them.
select count(*) as sent from pawl.send_items(false, 'process:parked', array_fill('t'::text, array[13]), array_fill('{}'::jsonb, array[13]), null, null,
  null, null, null, null, null, null, p_order_keys => array_fill('k'::text, array[13]), p_attached => array_fill('1 ms, troubleshoot'::text, array[13]));
select count(*) as claimed from pawl.claim(pawl.domain_find('process:parked'), 13, 600000, array_fill(0::bigint, array[10]), null, 'w');
select start(91, 'fail');
do $$
begin
  for n in 1..20 loop
    exit when pawl.process_deadlines_pass(100, pawl.now() + interval '2 min');
  end loop;
end
$$;
select o.status from pawl.outcome o where o.id = number(91);

-- A process that has ended does not wait any more, whatever it waited for.
create function claim_of (p_number integer) returns table (id bigint, token bigint) language sql as $$
  select c.id, c.token from pawl.claim(pawl.domain_find('process:shop'), 100, 600000, array_fill(0::bigint, array[10]), null, 'w') c
  where c.id = number(p_number)
$$;
select start(93, 'fail');
select suspend(c.id, c.token) from claim_of(93) c;
select p.wait, p.waits from pawl.process p where p.id = number(93);
select pass();
select status from shown where process = '93';
select p.wait, p.waits from pawl.process p where p.id = number(93);
select count(*) as waiting from pawl.process p join pawl.outcome o on o.id = p.id where p.wait is not null;

-- A process that another transaction keeps locked is postponed again and again. The audit has it once a minute for each reason.
select start(94, 'fail');
create function postpone (p_reason text) returns integer language plpgsql as $$
begin
  update pawl.fake_clock set at = at + interval '20 s';
  perform pawl.attached_due(1, 1000), pawl.requeue_due(100, '-infinity', 1000);
  return (select pawl.postpone(array[c.id], array[c.token], '{1000}', p_reason) from claim_of(94) c);
end
$$;
update pawl.process p set deadline_due = null where p.id = number(94);
select postpone('locked'), postpone('locked'), postpone('locked'), postpone('full'), postpone('locked');
select e.event, e.at, e.details from pawl.event e where e.id = number(94) and e.event <> 'SENT' order by e.at, e.event;
