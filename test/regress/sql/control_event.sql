-- control_event.sql - decisions about domains, schedules and the like are recorded with who decided, and deleted with the audit.
\i ../fake_clock.sql
select pawl.control_add('domain', 'shop', 'pause', null, 'stock count', '{"type": "charge"}');
select pawl.control_add('domain', 'shop', 'resume', 'ann', null);
select subject, name, action, operator = session_user as is_self, login = session_user as is_login, reason, details from pawl.control_event order by id;
select operator from pawl.control_event where action = 'resume';
-- A role that may not decide is named beside what it says about itself.
create function pawl.decide_for_test () returns void language sql security definer as $$
  select pawl.control_add('schedule', 'nightly', 'pause', 'ann', null)
$$;
grant usage on schema pawl to pawl_sender;
grant execute on function pawl.decide_for_test() to pawl_sender;
set session authorization pawl_sender;
select pawl.decide_for_test();
reset session authorization;
select operator, login from pawl.control_event where subject = 'schedule';
-- Too long, not a word.
select pawl.control_add('domain', 'shop', 'pause', repeat('o', 401), null);
select pawl.control_add('domain', 'shop', 'pause', null, repeat('r', 1001));
\set VERBOSITY terse
select pawl.control_add('Domain', 'shop', 'pause', null, null);
select count(*) from pawl.control_event;
-- Retention takes the oldest first, as many as it may, and nothing that is young.
insert into pawl.fake_clock (at) values (clock_timestamp() + interval '91 days');
select pawl.control_add('domain', 'shop', 'delete', null, null);
select pawl.prune_audit(1, '90 days') as first;
select action from pawl.control_event order by id;
select pawl.prune_audit(2, '90 days') as second, pawl.prune_audit(2, '90 days') as third;
select action from pawl.control_event;
