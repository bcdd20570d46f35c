-- lease_clock.sql - a clock that was some hours ahead and is set back: leases that were given or extended meanwhile end after their own length, and what
-- users have asked for stays.
\i ../fake_clock.sql
insert into pawl.fake_clock (at) values ('2026-01-05 12:00 UTC');
\set claim 'select count(*) as leased from pawl.claim(pawl.domain_find(\'shop\'), 1, :length, array_fill(0::bigint, array[10]), null, :worker)'
\set leases 'select worker, until - pawl.now() as lease from pawl.lease order by worker'
select count(*) from pawl.send('shop', array['a', 'a', 'a', 'a'], array_fill('1'::jsonb, array[4]));
\set length 60000
\set worker '\'before\''
:claim;
\set length 86400000
\set worker '\'day\''
:claim;

-- Three hours ahead: one lease is given, another one extended by its heartbeat; tasks, the bot and a dead letter are taken.
update pawl.fake_clock set at = at + interval '3 hours';
\set length 30000
\set worker '\'ahead\''
:claim;
select e.verdict from pawl.lease l, pawl.extend(array[l.id], array[l.token], 60000) e where l.worker = 'before';
select count(*) from pawl.send('shop', array['b'], array['1'::jsonb], p_delays_ms => array[7200000]);
select pawl.task_claim(array['prune'], '00000000-0000-4000-8000-00000000000a', 18000);
select is_held from pawl.telegram_lease(7, '00000000-0000-4000-8000-00000000000a', 30000, 10);
select chat_id, wait_ms, is_reserved from pawl.telegram_pace(7, '{-5, -5, 9}', 1000, 2, 30, 2000);
select pawl.telegram_limited(7, 8, 60000);
select count(*) from pawl.dead_letter_put(array['webhook'], array['k'], array['{}'::jsonb], array['refused'], array['x'], p_delay_ms => 0);
select count(*) from pawl.dead_letter_claim(array['webhook']);
:leases;

-- Set back. A caller that has read until an hour that has not come yet knows that.
update pawl.fake_clock set at = at - interval '3 hours' + interval '10 s';
select moved from pawl.requeue_due(100, pawl.now() + interval '3 hours', 1000, pawl.now() - interval '1 min');
:leases;
select due - pawl.now() as delay from pawl.delayed;
select pawl.task_claim(array['prune'], '00000000-0000-4000-8000-00000000000b', 18000);
select is_held from pawl.telegram_lease(7, '00000000-0000-4000-8000-00000000000b', 30000, 10);
select count(*) from pawl.dead_letter_claim(array['webhook']);
select chat_id, wait_ms, is_reserved from pawl.telegram_pace(7, '{-5, 9, 8}', 1000, 2, 30, 2000);
select next_free - pawl.now() as bot from pawl.telegram_pace;

-- None is corrected twice, and each is rescued at its own time.
update pawl.fake_clock set at = at + interval '31 s';
select moved from pawl.requeue_due(100, '-infinity', 1000);
:leases;
update pawl.fake_clock set at = at + interval '30 s';
select moved from pawl.requeue_due(100, '-infinity', 1000);
:leases;
select count(*) from pawl.dead_letter_claim(array['webhook']);

-- So it is after a start of the pod that finds the clock as it should be.
update pawl.fake_clock set at = at + interval '5 min';
\set worker '\'later\''
:claim;
update pawl.fake_clock set at = at - interval '5 min';
select moved from pawl.requeue_due(100, 'epoch', 1000);
:leases;

-- Half an hour is too long for a task as well.
update pawl.fake_clock set at = at + interval '30 min';
select pawl.task_claim(array['seal'], '00000000-0000-4000-8000-00000000000a', 18000);
update pawl.fake_clock set at = at - interval '30 min';
select pawl.task_claim(array['seal'], '00000000-0000-4000-8000-00000000000b', 18000);

-- A heartbeat that was noted while its lease was locked counts once, and for no longer than its length.
update pawl.fake_clock set at = at + interval '1 day';
select moved > 0 as rescued from pawl.requeue_due(1000, 'epoch', 1000);
\set worker '\'noted\''
:claim;
insert into pawl.lease_extension (id, token, until, lease_ms)
select l.id, l.token, pawl.now() + interval '3 hours', 30000 from pawl.lease l where l.worker = 'noted';
update pawl.fake_clock set at = at + interval '2 min';
select moved from pawl.requeue_due(1000, '-infinity', 1000);
select distinct until - pawl.now() as left from pawl.lease l where l.worker = 'noted';
update pawl.fake_clock set at = at + interval '31 s';
select moved > 0 as rescued, (select count(*) from pawl.lease_extension) as notes from pawl.requeue_due(1000, '-infinity', 1000);

-- Tasks are bounded: what takes names of its own fills no table, and takes no place from those that are there.
select count(*) from pawl.task_claim(array(select 'task-' || n from generate_series(1, 101) n), gen_random_uuid(), 1000);
insert into pawl.task (name, holder, until) select 'task-' || n, gen_random_uuid(), pawl.now() - interval '1 min' from generate_series(1, 1000) n;
select count(*) from pawl.task_claim(array['one more'], gen_random_uuid(), 1000);
select count(*) from pawl.task_claim(array['task-7'], gen_random_uuid(), 1000);
update pawl.task set until = pawl.now() - interval '2 hours' where name <> 'task-7';
select count(*) from pawl.task_claim(array['one more'], gen_random_uuid(), 1000);
select count(*) from pawl.task where name like 'task-%' or name = 'one more';
