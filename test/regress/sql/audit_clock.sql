-- audit_clock.sql - a clock that runs ahead for a while, further than the audit is kept, hides nothing that happens after it was set right.
\i ../fake_clock.sql
insert into pawl.fake_clock (at) values ('2026-01-05 12:00 UTC');
select count(*) from pawl.send('shop', array['a'], array['1'::jsonb]);
update pawl.fake_clock set at = at + interval '110 days';
select pawl.prune(100, '200 days', '90 days');
update pawl.fake_clock set at = at - interval '110 days';

-- Before the next retention.
select count(*) from pawl.send('shop', array['a'], array['1'::jsonb]);
select event, count(*) from pawl.audit group by event order by event;
select count(*) as leased from pawl.claim(pawl.domain_find('shop'), 10, 60000, array_fill(0::bigint, array[10]), null, 'w1');
select count(*) as settled
from pawl.settle(array(select id from pawl.lease order by id), array(select token from pawl.lease order by id), '{complete,complete}') s
where s.settled;

-- Retention deletes commands and keeps their audit, and the audit starts where it should.
update pawl.fake_clock set at = at + interval '1 hour';
select pawl.least_age_set('commands', '0');
select pawl.prune(100, '0', '90 days') > 0 as pruned;
select (select count(*) from pawl.command) as commands, (select at from pawl.audit_start) = pawl.now() - interval '90 days' as as_it_should;
select event, count(*) from pawl.audit group by event order by event;
