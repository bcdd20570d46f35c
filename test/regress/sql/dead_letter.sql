-- dead_letter.sql - the life of a letter, with the clock in our hand.
\i ../fake_clock.sql
insert into pawl.fake_clock (at) values ('2026-01-01 00:00 UTC');

create view letter as
select id, status, retry_count as tries, lease,
       to_char(lease_until at time zone 'UTC', 'HH24:MI:SS') as until,
       to_char(next_retry_at at time zone 'UTC', 'HH24:MI:SS') as next, error_code as code
from pawl.failed_operations
order by id;

-- Put: a row per item, twins inside one call and over calls are one row. (An id that a twin drew is not used again.)
select * from pawl.dead_letter_put(array['pay', 'pay', 'refund'], array['b', 'a', 'a'], array['{}', '{}', '[1]']::jsonb[],
                                   array['no', 'no', 'no'], array['x', 'x', 'x'], 300000) order by item;
select * from pawl.dead_letter_put(array['pay', 'pay', 'pay'], array['c', 'a', 'c'], array['{}', '{}', '{}']::jsonb[],
                                   array['no', 'no', 'no'], array['x', 'x', 'x'], 300000) order by item;
select * from pawl.dead_letter_put('{}', '{}', '{}', '{}', '{}', 0);
table letter;

-- What is wrong as a whole is refused as a whole.
\set VERBOSITY sqlstate
select * from pawl.dead_letter_put(array['pay'], array['a', 'b'], array['{}']::jsonb[], array['no'], array['x'], 0);
select * from pawl.dead_letter_put(array['pay'], null, array['{}']::jsonb[], array['no'], array['x'], 0);
select * from pawl.dead_letter_put(array['pay'], array[''], array['{}']::jsonb[], array['no'], array['x'], 0);
select * from pawl.dead_letter_put(array[repeat('t', 51)], array['a'], array['{}']::jsonb[], array['no'], array['x'], 0);
select * from pawl.dead_letter_claim(array['pay'], 0, 60000, 3);
select * from pawl.dead_letter_claim(array['pay'], null, 60000, 3);
select * from pawl.dead_letter_claim(array['pay'], 1001, 60000, 3);
select * from pawl.dead_letter_claim(array['pay'], 1, 0, 3);
select * from pawl.dead_letter_settle(array[1, 2], array[1], array[true], array['no'], array['x'], 3, 0);
\set VERBOSITY default

-- Nothing is due before five minutes have passed; then only the types asked for, in order, up to the limit.
select * from pawl.dead_letter_claim(array['pay'], 10, 60000, 3);
update pawl.fake_clock set at = at + interval '5 min';
select * from pawl.dead_letter_claim(array['pay'], 2, 60000, 3) order by id;
select * from pawl.dead_letter_claim(array['pay'], 2, 60000, 3);
select * from pawl.dead_letter_claim(array['pay'], 2, 60000, 3);
select * from pawl.dead_letter_claim('{}', 2, 60000, 3);
table letter;

-- Settle: worked, failed with tries left, a wrong lease, one that is not there.
select * from pawl.dead_letter_settle(array[1, 2, 5, 99], array[1, 1, 7, 1], array[true, false, true, true],
                                      array[null, 'again', null, null], array[null, 'y', null, null], 3, 300000) order by id;
-- The same report again changes nothing.
select * from pawl.dead_letter_settle(array[1, 2], array[1, 1], array[false, true], array['late', null],
                                      array['z', null], 3, 300000) order by id;
table letter;

-- Hold: the lease that is the letter's last one, running or resolved.
select pawl.dead_letter_hold(1, 1) as resolved, pawl.dead_letter_hold(5, 1) as running, pawl.dead_letter_hold(5, 7) as other,
       pawl.dead_letter_hold(2, 1) as pending, pawl.dead_letter_hold(99, 1) as none;

-- A pod dies: its lease ends after a minute, not before, and the number grows.
update pawl.fake_clock set at = at + interval '59 s';
select id, lease from pawl.dead_letter_claim(array['pay'], 10, 60000, 3);
update pawl.fake_clock set at = at + interval '1 s';
select id, lease from pawl.dead_letter_claim(array['pay'], 10, 60000, 3);
select settled, status from pawl.dead_letter_settle(array[5], array[1], array[true], array[null], array[null], 3, 300000);

-- It dies with the second one and the third: then nobody tries again.
update pawl.fake_clock set at = at + interval '1 min';
select id, lease from pawl.dead_letter_claim(array['pay'], 10, 60000, 3);
update pawl.fake_clock set at = at + interval '1 min';
select id, lease from pawl.dead_letter_claim(array['pay'], 10, 60000, 3);
table letter;

-- Three failures end as failed.
update pawl.fake_clock set at = at + interval '5 min';
select id, lease from pawl.dead_letter_claim(array['pay'], 10, 60000, 3);
select status from pawl.dead_letter_settle(array[2], array[2], array[false], array['no'], array['x'], 3, 300000);
update pawl.fake_clock set at = at + interval '5 min';
select id, lease from pawl.dead_letter_claim(array['pay'], 10, 60000, 3);
select status from pawl.dead_letter_settle(array[2], array[3], array[false], array['no'], array['x'], 3, 300000);

-- A reply that finds its process locked has not been tried; one that finds a queue locked has.
select count(*) from pawl.dead_letter_keep('{reply,reply}', '{p,q}', array['{"queue": "response:{\"process\": 1, \"step\": \"a\"}"}', '{"queue": "q"}']::jsonb[], '{no,no}', '{55P03,55P03}', 0);
select c.operation_key, s.status from pawl.dead_letter_claim('{reply}', 10, 60000, 1) c
cross join lateral pawl.dead_letter_settle(array[c.id], array[c.lease], '{false}', '{no}', '{55P03}', 1, 300000) s order by 1;
select operation_key, status, retry_count, next_retry_at - pawl.now() as after from pawl.failed_operations where operation_type = 'reply' order by 1;
update pawl.fake_clock set at = at + interval '20 s';
select s.status from pawl.dead_letter_claim('{reply}', 10, 60000, 1) c
cross join lateral pawl.dead_letter_settle(array[c.id], array[c.lease], '{false}', '{no}', '{55P03}', 1, 300000) s;
select retry_count, next_retry_at - pawl.now() as after from pawl.failed_operations where operation_key = 'p';

-- A reply to a process has no last try: neither failures nor pods that die end it. A reply that becomes a command has one.
update pawl.failed_operations set operation_data = '{"queue": "command:a/b"}', status = 'pending', retry_count = 0, next_retry_at = pawl.now() where operation_key = 'q';
update pawl.fake_clock set at = at + interval '1 min';
select c.operation_key, s.status from pawl.dead_letter_claim('{reply}', 10, 60000, 1) c
cross join lateral pawl.dead_letter_settle(array[c.id], array[c.lease], '{false}', '{no}', '{57014}', 1, 300000) s order by 1;
select operation_key, status, retry_count, next_retry_at - pawl.now() as after from pawl.failed_operations where operation_type = 'reply' order by 1;
update pawl.fake_clock set at = at + interval '5 min';
select operation_key from pawl.dead_letter_claim('{reply}', 10, 60000, 1);
update pawl.fake_clock set at = at + interval '1 min';
select operation_key from pawl.dead_letter_claim('{reply}', 10, 60000, 1);
delete from pawl.failed_operations where operation_type = 'reply';

-- By hand: due at once, tries from zero, the lease goes on growing; not for one that is resolved, running or missing.
select id, lease from pawl.dead_letter_claim(array['refund'], 10, 60000, 3);
select * from pawl.dead_letter_retry(array[1, 2, 3, 99]) order by id;
select id, lease from pawl.dead_letter_claim(array['pay'], 10, 60000, 3);
table letter;

-- A resolved twin does not stand in the way of a new one.
select is_new from pawl.dead_letter_put(array['pay'], array['a'], array['{}']::jsonb[], array['no'], array['x'], 300000);

-- Delete.
select * from pawl.dead_letter_delete(array[1, 2, 99]) as id order by id;
table letter;

-- The table itself refuses what no function would do.
\set VERBOSITY terse
update pawl.failed_operations set status = 'lost';
update pawl.failed_operations set status = 'retrying', lease_until = null;
update pawl.failed_operations set lease_until = pawl.now() where status = 'failed';

-- An application may keep a letter, but not touch the table or decide about it.
set role pawl_app;
select is_new from pawl.dead_letter_put(array['pay'], array['app'], array['{}']::jsonb[], array['no'], array['x'], 0);
select pawl.dead_letter_delete(array[3]);
update pawl.failed_operations set status = 'resolved';
reset role;
drop view letter;
