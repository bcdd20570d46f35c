-- retention_clock.sql - a clock that jumps ahead: periodic retention waits for a day before it believes it, and nothing is stuck once it is set right.
\i ../fake_clock.sql
insert into pawl.fake_clock (at) values ('2026-01-05 12:00 UTC');
update pawl.retention_clock set at = pawl.now();
-- What a monitor does.
\set retain 'select gone as deleted from pawl.retain(100, \'30 days\', \'365 days\', null); select pawl.retention_jump_s() / 86400 as days_ahead, (select count(*) from pawl.outcome) as commands, (select count(*) from pawl.kept_key) as keys;'
create function pg_temp.end_all () returns bigint language sql as $$
  select count(*)
  from pawl.settle(array(select id from pawl.lease order by id), array(select token from pawl.lease order by id),
                   array_fill('complete'::text, array[(select count(*)::integer from pawl.lease)])) s
  where s.settled
$$;
select count(*) from pawl.send('shop', array['a'], array['1'::jsonb], array['00000000-0000-4000-8000-000000000001'::uuid]);
select count(*) from pawl.claim(pawl.domain_find('shop'), 10, 60000, array_fill(0::bigint, array[10]), null, 'w1');
select pg_temp.end_all();
:retain

-- 40 days ahead, and right again: nothing was deleted.
update pawl.fake_clock set at = at + interval '40 days';
:retain
:retain
update pawl.fake_clock set at = at - interval '40 days' + interval '1 hour';
:retain

-- A clock that is set twice, each time ahead of the last retention, is believed a day after the last time it was set.
update pawl.fake_clock set at = at + interval '400 days';
:retain
update pawl.fake_clock set at = at - interval '360 days';
:retain
update pawl.fake_clock set at = at + interval '23 hours';
:retain

-- Still there after a day: ended commands go, keys stay. The id is known.
update pawl.fake_clock set at = at + interval '1 hour';
:retain
select is_new from pawl.send('shop', array['a'], array['1'::jsonb], array['00000000-0000-4000-8000-000000000001'::uuid]);

-- 400 days: keys go too, a day later. The id is new.
update pawl.fake_clock set at = at + interval '400 days';
:retain
update pawl.fake_clock set at = at + interval '1 day';
:retain
select is_new from pawl.send('shop', array['a'], array['1'::jsonb], array['00000000-0000-4000-8000-000000000001'::uuid]);

-- Set right: leases of commands and tasks that were taken meanwhile end after their own length, not after 441 days.
select count(*) as leased from pawl.claim(pawl.domain_find('shop'), 10, 60000, array_fill(0::bigint, array[10]), null, 'w2');
select pawl.task_claim(array['prune'], '00000000-0000-4000-8000-00000000000a', 18000);
update pawl.fake_clock set at = at - interval '441 days';
:retain
select pawl.task_claim(array['prune'], '00000000-0000-4000-8000-00000000000b', 18000);
select moved from pawl.requeue_due(100, '-infinity', 1000);
select until - pawl.now() as lease from pawl.lease;
update pawl.fake_clock set at = at + interval '61 s';
select moved from pawl.requeue_due(100, '-infinity', 1000);
select count(*) as ready from pawl.ready;
