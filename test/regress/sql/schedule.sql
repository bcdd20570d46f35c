-- schedule.sql - schedules under a clock that the test sets: each time once, missed times, overlap, jitter, failures, decisions.
\i ../fake_clock.sql
\set VERBOSITY terse
set timezone = 'UTC';
insert into pawl.fake_clock (at) values ('2026-01-01 00:00:30 UTC');
create view fired as
  select d.name as domain, c.type, c.correlation_id, c.order_key from pawl.command c join pawl.domain d on d.id = c.domain_id order by c.id;
-- Refused.
select pawl.schedule_create('x', 'shop', 'charge');
select pawl.schedule_create('x', 'shop', 'charge', p_cron => '@daily', p_every => '1 h');
select pawl.schedule_create('x', 'shop', 'charge', p_every => '1 h', p_timezone => 'UTC');
select pawl.schedule_create('x', 'shop', 'charge', p_every => '0.5 s');
select pawl.schedule_create('x', 'shop', 'charge', p_every => '1.0005 s');
select pawl.schedule_create('x', 'shop', 'charge', p_every => '367 days');
select pawl.schedule_create('x', 'shop', 'charge', p_every => '1 h', p_jitter => '-1 s');
select pawl.schedule_create('x', 'shop', 'charge', p_every => '1 h', p_missed => 'some');
select pawl.schedule_create('x', 'shop', 'charge', p_every => '1 h', p_overlap => null);
select pawl.schedule_create('x y', 'shop', 'charge', p_every => '1 h');
select pawl.schedule_create(null, 'shop', 'charge', p_every => '1 h');
select pawl.schedule_create('x', 'shop', null, p_every => '1 h');
select pawl.schedule_create('x', 'process:shop', 'charge', p_every => '1 h');
select pawl.schedule_create('x', 'shop', 'charge', '[]', p_every => '1 h', p_is_process => true);
select pawl.schedule_create('x', 'shop', 'charge', p_every => '1 h', p_is_process => true, p_overlap => 'queue');
select pawl.schedule_pause('x');
select pawl.schedule_run('x');
select pawl.schedule_next('x');
select pawl.schedule_delete('x');
select pawl.schedules_fire(0, 1000);
select pawl.schedules_fire(null, 1000);
-- Created once; another one of that name is refused, or replaces it.
select pawl.schedule_create('minute', 'shop', 'charge', '{"n": 1}', '* * * * *');
select pawl.schedule_create('minute', 'shop', 'charge', '{"n": 1}', '*  * * * * ');
select pawl.schedule_create('minute', 'shop', 'charge', '{"n": 2}', '* * * * *');
select pawl.schedule_create('minute', 'shop', 'charge', '{"n": 2}', '* * * * *', p_replace => true);
select name, status, next_at from pawl.schedule_list();
select at, due_at, local from pawl.schedule_next('minute', 2);
-- Nothing is due; then each time fires once, however often it is asked.
select * from pawl.schedules_fire(100, 3600000);
update pawl.fake_clock set at = '2026-01-01 00:01 UTC';
select * from pawl.schedules_fire(100, 3600000);
select * from pawl.schedules_fire(100, 3600000);
select * from fired;
select pawl.schedule_delete('minute');
-- Missed times: a minute late is not missed.
select pawl.schedule_create(m, 'late', m, p_cron => '*/10 * * * *', p_missed => m) from unnest('{skip,once,all}'::text[]) m;
update pawl.fake_clock set at = '2026-01-01 00:11 UTC';
select * from pawl.schedules_fire(100, 3600000);
update pawl.fake_clock set at = '2026-01-01 00:42 UTC';
select * from pawl.schedules_fire(100, 3600000);
select type, correlation_id from fired where domain = 'late' order by type, correlation_id;
-- After years, in one call: the last hundred.
update pawl.fake_clock set at = '2031-01-01 00:05 UTC';
select * from pawl.schedules_fire(100, 3600000);
select type, count(*), min(correlation_id), max(correlation_id) from fired where domain = 'late' and correlation_id like '%@203%' group by type;
select name, next_at, last_at from pawl.schedule_list();
-- The clock is set back: they begin again from there, and no time fires twice.
update pawl.fake_clock set at = '2030-12-31 23:55 UTC';
select pawl.schedules_due_ms(5000);
select * from pawl.schedules_fire(100, 3600000);
update pawl.fake_clock set at = '2031-01-01 00:00 UTC';
select * from pawl.schedules_fire(100, 3600000);
select pawl.schedule_delete(m) from unnest('{skip,once,all}'::text[]) m;
-- Overlap.
select pawl.schedule_create(o, 'over', o, p_every => '1 min', p_overlap => o) from unnest('{allow,skip,queue}'::text[]) o;
update pawl.fake_clock set at = '2031-01-01 01:00 UTC';
select sent from pawl.schedules_fire(100, 3600000);
update pawl.fake_clock set at = '2031-01-01 01:01 UTC';
select sent from pawl.schedules_fire(100, 3600000);
select type, correlation_id, order_key from fired where domain = 'over';
select name, last_at, skipped_at from pawl.schedule_list();
select count(*) from pawl.command c, pawl.command_cancel(array[c.command_id]) x where c.type = 'skip';
update pawl.fake_clock set at = '2031-01-01 01:02 UTC';
select sent from pawl.schedules_fire(100, 3600000);
select pawl.schedule_delete(o) from unnest('{allow,skip,queue}'::text[]) o;
-- A process; the second one waits for the first to end.
select pawl.schedule_create('report', 'books', 'monthly', '{"of": "all"}', '@hourly', p_is_process => true, p_overlap => 'skip');
update pawl.fake_clock set at = '2031-01-01 02:00 UTC';
select sent from pawl.schedules_fire(100, 3600000);
update pawl.fake_clock set at = '2031-01-01 03:00 UTC';
select sent from pawl.schedules_fire(100, 3600000);
select domain, type, correlation_id from fired where domain like 'process:%';
select p.state from pawl.process p;
-- Paused, it does not fire, but can be run; a run that is repeated is one.
select pawl.schedule_pause('report', 'ann', 'stock count'), pawl.schedule_pause('report');
update pawl.fake_clock set at = '2031-01-01 04:30 UTC';
select sent, next_ms from pawl.schedules_fire(100, 3600000);
select pawl.schedule_run('report', '00000000-0000-4000-8000-000000000001', 'ann'), pawl.schedule_run('report', '00000000-0000-4000-8000-000000000001', 'ann');
select pawl.schedule_resume('report'), pawl.schedule_resume('report');
select name, status, next_at, last_at, last_id from pawl.schedule_list();
select pawl.schedule_create('report', 'books', 'monthly', '{"of": "all"}', '@daily', 'America/New_York', p_is_process => true, p_replace => true);
select name, cron, timezone, next_at from pawl.schedule_list(p_status => 'active', p_domain => 'books');
select subject, name, action, operator = session_user as is_own, reason, details - 'command_id' as details from pawl.control_event where name = 'report' order by id;
select pawl.schedule_delete('report');
-- Jitter follows from schedule and time, and stays below the next time.
select pawl.schedule_create('jitter', 'shop', 'charge', p_every => '1 min', p_jitter => '1 h');
select bool_and(due_at between at and at + interval '59.999 s') as is_bounded, count(distinct due_at - at) > 50 as is_spread from pawl.schedule_next('jitter', 100);
select array_agg(due_at) = (select array_agg(due_at) from pawl.schedule_next('jitter', 100)) as is_same from pawl.schedule_next('jitter', 100);
select pawl.schedule_delete('jitter');
-- One that fails holds up no other; it says why, is tried again ever later, and works when it can.
select pawl.schedule_create('bad', 'shop', 'charge', p_cron => '@hourly', p_timezone => 'Europe/Berlin'), pawl.schedule_create('good', 'shop', 'charge', p_every => '1 h');
update pawl.schedule set timezone = 'Europe/Atlantis' where name = 'bad';
update pawl.fake_clock set at = '2031-01-01 05:00 UTC';
select * from pawl.schedules_fire(100, 3600000);
update pawl.fake_clock set at = '2031-01-01 05:00:30 UTC';
select * from pawl.schedules_fire(100, 3600000);
update pawl.fake_clock set at = '2031-01-01 05:05 UTC';
select * from pawl.schedules_fire(100, 3600000);
select name, status, failing_since, error, next_at from pawl.schedule_list();
select * from pawl.schedules_failing();
update pawl.schedule set timezone = 'Europe/Berlin' where name = 'bad';
update pawl.fake_clock set at = '2031-01-01 05:10 UTC';
select * from pawl.schedules_fire(100, 3600000);
select name, status, last_at, next_at from pawl.schedule_list();
-- A list has filters and pages.
select name from pawl.schedule_list(p_limit => 1);
select name from pawl.schedule_list(p_before => (select id from pawl.schedule where name = 'good'));
select name from pawl.schedule_list(p_type => 'none');
select name from pawl.schedule_list(p_status => 'broken');
select name from pawl.schedule_list(p_limit => 0);
-- 5000 that are not due: one look at an index.
insert into pawl.schedule (name, domain, type, payload, is_process, every_ms, jitter_ms, missed, overlap, created_at, changed_at)
select 'many' || n, 'shop', 'charge', '{}', false, 3600000, 0, 'once', 'allow', now(), now() from generate_series(1, 5000) n;
insert into pawl.schedule_state (id, next_at, due_at, computed_at)
select s.id, '2031-01-01 06:00 UTC'::timestamptz, '2031-01-01 06:00 UTC', '2031-01-01 05:00 UTC' from pawl.schedule s where s.name like 'many%';
analyze pawl.schedule_state;
set enable_seqscan = off;
set enable_bitmapscan = off;
explain (costs off) select s.* from pawl.schedule_state s where s.due_at <= '2031-01-01 05:10 UTC' order by s.due_at limit 100 for update skip locked;
explain (costs off) select min(s.due_at) from pawl.schedule_state s where s.due_at is not null;
explain (costs off) select max(s.computed_at) from pawl.schedule_state s where s.due_at is not null;
select pg_stat_force_next_flush();
select idx_tup_read as before from pg_stat_user_indexes where indexrelname = 'schedule_state_due' \gset
select * from pawl.schedules_fire(100, 3600000);
select pg_stat_force_next_flush();
select idx_tup_read - :before < 1000 as is_cheap from pg_stat_user_indexes where indexrelname = 'schedule_state_due';
-- All of them are due: a call is bounded.
update pawl.fake_clock set at = '2031-01-01 06:00 UTC';
select * from pawl.schedules_fire(1000, 3600000);
select * from pawl.schedules_fire(100, 3600000);
