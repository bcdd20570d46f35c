-- process_start.sql - starts with a delay and a priority, and many in one call: what is refused, in which order they are claimed, and that a
-- refused item changes nothing about the others.
set client_min_messages = warning; -- a start of a type that nothing runs says so

\ir ../fake_clock.sql
insert into pawl.fake_clock (at) values ('2026-01-01 00:00 UTC');
create function process (p_number integer) returns uuid language sql as $$
  select ('018f0000-0000-7000-8000-0000000000' || lpad(p_number::text, 2, '0'))::uuid
$$;
create function later (p_by interval) returns void language sql as $$ update pawl.fake_clock set at = at + p_by $$;
create function claim () returns table (process text, attempt integer) language plpgsql as $$
begin
  perform pawl.requeue_due(1000, '-infinity', 1000);
  return query
    select right(k.command_id::text, 2), c.attempt::integer
    from pawl.claim(pawl.domain_find('process:shop'), 100, 600000, array_fill(0::bigint, array[10]), null, 'w') with ordinality c
    join pawl.command k on k.id = c.id order by c.ordinality;
end
$$;
create view shown as
  select right(c.command_id::text, 2) as process, s ->> 'status' as status, s ->> 'continues_at' as continues_at, s ->> 'deadline' as deadline
  from pawl.command c cross join lateral pawl.process_show(c.command_id, 'shop') s;

-- What is refused, and nothing is written.
select pawl.start('order', '{}', p_delay => '-1 s');
select pawl.start('order', '{}', p_delay => '11 years');
select pawl.start('order', '{}', p_priority => 10);
select pawl.start('order', '{}', p_priority => -1);
select pawl.start('order', '{}', p_priority => 65540);
select count(*) from pawl.command;

-- The highest priority first, then in order of the starts; null is the default of 4.
select count(pawl.start('order', '{}', process(i::integer), 'shop', p_priority => p)) from unnest('{0,null,4,9,5,9}'::integer[]) with ordinality u (p, i);
select * from claim();

-- A delayed one is PENDING until it is due; a claim does not take it before.
select pawl.start('order', '{}', process(11), 'shop', p_delay => '1 h', p_priority => 9, p_deadline => '10 min') = process(11) as same;
select pawl.start('order', '{}', process(12), 'shop', p_delay => '1 h', p_deadline_at => '2026-01-01 00:30 UTC', p_on_deadline => 'fail') = process(12) as same;
select * from shown where process >= '11' order by process;
-- Again, with another delay: it is the same process, due when it was.
select pawl.start('order', '{}', process(11), 'shop', p_delay => '2 h', p_priority => 9, p_deadline => '10 min') = process(11) as same;
select pawl.start('order', '{}', process(11), 'shop', p_priority => 5, p_deadline => '10 min');
select * from shown where process >= '11' order by process;
-- A response that comes before is kept, and does not begin it.
select verdict from pawl.process_signal(array[process(11)], '{paid}', '{"{}"}', '{once}');
select later('59 min');
select pawl.attached_due(100, 1000) > 0 as decided; -- the deadline that is a time has passed before the process was due
select * from claim();
select * from shown where process >= '11' order by process;
select later('1 min');
select * from claim();
select later('10 min'); -- the deadline that is a duration counts from then
select pawl.attached_due(100, 1000) > 0 as decided;
select * from shown where process >= '11' order by process;

-- A definition's deadline counts from then, too.
select pawl.process_define('shop', 'timed', '{"domain": "shop", "type": "timed", "steps": [{"name": "nap", "sleep": "1h"}]}', 600000, 'fail', 'ann', '[{"name": "nap", "kind": "sleep", "sleeps": "for a fixed time"}]');
select pawl.start('timed', '{}', process(21), 'shop', p_delay => '1 h') = process(21) as same, pawl.start('timed', '{}', process(22), 'shop') = process(22) as same;
select * from shown where process like '2%' order by process;

-- Many in one call: each has its verdict, and a poisoned one changes nothing about its neighbours.
create table sent as
select * from pawl.start_many(
  '{order,order,"no type",order,order,order,order,order,order,null,order}',
  array['{}', '[]', '{}', '{}', '{}', '{}', '{"n": 1}', '{"n": 2}', null, '{}', jsonb_build_object('large', repeat('x', 1024 * 1024))],
  array[process(31), process(32), process(33), process(34), process(35), null, process(37), process(37), process(39), process(40), process(41)], 'shop',
  p_keys => array[null, null, null, null, null, '', null, null, 'other', null, null],
  p_delays => '{1 h,null,null,-1 h,null,null,null,null,null,null,null}',
  p_priorities => '{9,null,null,null,40000,null,null,null,null,null,null}',
  p_deadlines => '{10 min,null,null,null,null,null,null,null,null,null,null}', p_on_deadline => '{fail,null,null,null,null,null,null,null,null,null,null}');
select ord, right(process_id::text, 2) as process, is_new, status, left(refusal, 120) as refusal from sent order by ord;
select right(command_id::text, 2) as process, priority, payload from pawl.command where command_id > process(29) order by id;
select * from shown where process like '3%' order by process;
-- The same again, with another state for one of them.
select ord, right(process_id::text, 2) as process, is_new, status, refusal
from pawl.start_many('{order,order}', array['{}', '{"n": 3}']::jsonb[], array[process(31), process(37)], 'shop', p_priorities => '{9,null}',
                     p_deadlines => '{10 min,null}', p_on_deadline => '{fail,null}');
-- Keys: the same text is the same process, and none in another domain.
select ord, is_new, status, process_id = pawl.key('order-' || ord % 2) as is_key, refusal from pawl.start_many('{order,order,order}', p_domain => 'shop', p_keys => '{order-1,order-0,order-1}');
select ord, is_new, status, refusal from pawl.start_many('{order,order}', p_domain => 'yard', p_keys => '{order-1,order-2}');
-- None of them is good.
select ord, is_new, status, refusal from pawl.start_many('{order,order}', '{1,2}');
-- What is refused as a whole.
select * from pawl.start_many('{}');
select * from pawl.start_many(null);
select * from pawl.start_many('{order}', '{}');
select * from pawl.start_many('{order}', p_domain => 'process:shop');
select * from pawl.start_many('{order}', p_domain => null);
select * from pawl.start_many('{{order}}');
select * from pawl.start_many(array_fill('order'::text, array[10001]));
select count(*) from pawl.start_many(array_fill('order'::text, array[501]), p_keys => (select array_agg(n::text) from generate_series(1, 501) n));

-- Ten thousand at once.
select count(*) filter (where is_new), count(distinct process_id) from pawl.start_many(array_fill('order'::text, array[10000]), p_domain => 'many');

-- An interval with months is as long as it is used for, not as it compares: one item is refused, not all.
select ord, is_new, status, left(refusal, 80) as refusal from pawl.start_many('{order,order,order}', p_domain => 'months', p_delays => '{null,121 months,-120 months 3610 days}');
select ord, is_new, status, left(refusal, 80) as refusal from pawl.start_many('{order,order,order}', p_domain => 'months', p_deadlines => '{null,121 months,-120 months 3610 days}');
