-- snooze.sql - a snoozed command is due later, and its attempt does not count; from a bound on it does.
\i ../fake_clock.sql
insert into pawl.fake_clock (at) values ('2026-01-05 12:00 UTC');
create function claim () returns table (attempt smallint, max_attempts smallint) language sql as $$
  select c.attempt, c.max_attempts from pawl.claim(pawl.domain_find('shop'), 10, 60000, array_fill(0::bigint, array[10]), null, 'w') c
$$;
create function snooze (p_delay_ms bigint default null, p_error text default null) returns table (settled boolean, status text, due_in interval) language sql as $$
  select s.settled, s.status, (select d.due - pawl.now() from pawl.delayed d)
  from pawl.lease l, pawl.settle(array[l.id], array[l.token], array['snooze'], null, array[p_error], array[p_delay_ms]) s
$$;
create function due (p_s integer) returns integer language sql as $$
  update pawl.fake_clock set at = at + p_s * interval '1 s';
  select moved from pawl.requeue_due(100, 'epoch', 1000)
$$;

select count(*) from pawl.send('shop', array['t'], array['1'::jsonb], p_max_attempts => array[2]);
select * from claim();
select settled, status from snooze();
select due - pawl.now() as due_in, attempt from pawl.delayed;
select due(10);
select * from claim();
select settled, status from snooze(60000, 'not yet');
select due(60);
-- Again for the same reason within a minute of the event: the audit has one.
select * from claim();
select settled, status from snooze(1000, 'not now');
select due(1);
select * from claim();
select settled, status from snooze(1000, 'not now');
select event, attempt, actor, details from pawl.audit order by at, step, place;
select pawl.command_show(command_id) ->> 'error' as error, count, since from pawl.command join pawl.snooze using (id);

-- Out of range: nothing is settled. A retry may have another delay.
select due(1);
select * from claim();
select from snooze(999);
select from snooze(2592000001);
select from pawl.lease l, pawl.settle(array[l.id], array[l.token], array['sleep']);
select s.status from pawl.lease l, pawl.settle(array[l.id], array[l.token], array['retry'], null, null, array[0]) s;

-- A cancellation that was asked for meanwhile counts.
select count(*) from pawl.send('shop', array['t'], array['2'::jsonb], array['00000000-0000-4000-8000-000000000002'::uuid]);
select * from claim();
select verdict from pawl.cancel(array['00000000-0000-4000-8000-000000000002'::uuid]);
select s.status from pawl.lease l, pawl.settle(array[l.id], array[l.token], array['snooze']) s where l.cancel;

-- From 10,000 snoozes on, or 30 days after the first, it counts as a retry, and ends in the troubleshooting queue; after an operator's retry it begins anew.
update pawl.snooze set count = 10000;
select s.status from pawl.lease l, pawl.settle(array[l.id], array[l.token], array['snooze'], null, array['busy']) s;
select error, (select count(*) from pawl.snooze) as snoozes from pawl.tsq;
select verdict from pawl.tsq_decide(array(select command_id from pawl.tsq join pawl.command using (id)), 'retry');
select * from claim();
select settled, status from snooze();
update pawl.snooze set since = since - interval '30 days';
select due(10);
select * from claim();
select settled, status from snooze(5000);
select attempt, due - pawl.now() as due_in from pawl.delayed;
