-- process_deadline_edge.sql - deadlines beside cancellations, and with a clock that was ahead.
set client_min_messages = warning; -- a start of a type that nothing runs says so

\ir ../fake_clock.sql
insert into pawl.fake_clock (at) values ('2026-01-01 00:00 UTC');
create function process (p_number integer) returns uuid language sql as $$
  select ('018f0000-0000-7000-8000-0000000000' || lpad(p_number::text, 2, '0'))::uuid
$$;
create function start (p_number integer, p_action text) returns boolean language sql as $$
  select pawl.start('order', '{}', process(p_number), 'shop', p_deadline => '1 min', p_on_deadline => p_action) = process(p_number)
$$;
create function complete (p_id bigint, p_token bigint) returns text language sql as $$
  select w.verdict
  from pawl.process_write(array[p_id], array[p_token], '{"{\"step\": \"last\"}"}', '{1}', null, null, null, null, null, null, null, null, null,
    '{complete}', '{"\"done\""}', null) w
$$;
create view shown as
  select right(c.command_id::text, 2) as process, pawl.process_status(c.id) as status from pawl.command c;

-- A cancellation that was accepted is not lost if the function ends after the deadline.
select start(1, 'troubleshoot'), start(2, 'compensate'), start(3, 'fail');
create temp table leased as
  select c.id, c.token from pawl.claim(pawl.domain_find('process:shop'), 10, 600000, array_fill(0::bigint, array[10]), null, 'w') c;
select verdict from pawl.cancel(array[process(1), process(2), process(3)], 'not wanted', 'ann');
update pawl.fake_clock set at = at + interval '61 s';
select complete(id, token) from leased order by id;
select * from shown order by 1;

-- The clock was ahead when it was decided, and is set back. After a retry the deadline does not count any more, although it is still to come.
select start(4, 'troubleshoot');
update pawl.fake_clock set at = at + interval '2 hours';
select pawl.attached_due(100, 1000) as next_ms;
select status from shown where process = '04';
update pawl.fake_clock set at = at - interval '2 hours' + interval '1 s';
select verdict from pawl.process_retry(array[process(4)], null, 'ann');
truncate leased;
insert into leased
  select c.id, c.token from pawl.claim(pawl.domain_find('process:shop'), 10, 600000, array_fill(0::bigint, array[10]), null, 'w') c;
update pawl.fake_clock set at = at + interval '90 s';
select complete(id, token) from leased;
select status from shown where process = '04';

-- Where the same was decided before and is decided again, the note of it is there.
select start(5, 'troubleshoot');
update pawl.fake_clock set at = at + interval '2 hours';
select pawl.attached_due(100, 1000) as next_ms;
update pawl.process set deadline_due = deadline where id = pawl.process_number(process(5));
select verdict from pawl.process_retry(array[process(5)], null, 'ann');
update pawl.process set retried_at = null where id = pawl.process_number(process(5));
select pawl.attached_due(100, 1000) as next_ms;
select status from shown where process = '05';

