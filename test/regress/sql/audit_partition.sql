-- audit_partition.sql - events are shown for as long as they are kept; whole weeks of them are dropped. The first partition ends in the
-- week after next of the real time, hence only counts are printed.
\i ../fake_clock.sql
set client_min_messages = error;
create publication everything for all tables;
-- Days from the Monday of the week in which the schema was made.
create table monday as select p.to_at - interval '14 days' as at from pawl.partitions('pawl.event') p;
create function clock (p_days interval) returns void language sql as $$
  delete from pawl.fake_clock;
  insert into pawl.fake_clock (at) select m.at + p_days from monday m
$$;
create function add_event () returns void language sql as $$
  insert into pawl.event (id, at, domain_id, attempt, event) values (1, pawl.now(), 1, 1, 'RECEIVED')
$$;
create view weeks as select * from pawl.partitions('pawl.event') where from_at is not null;

-- Weekly partitions are created before their first event, once; a partition that already exists is enough for today.
select clock('1 day'), add_event();
select pawl.prune_audit(100, '90 days') as deleted;
select count(*) as weeks from weeks;
select clock('50 days');
select pawl.prune_audit(100, '90 days') as deleted, pawl.prune_audit(100, '90 days') as again;
select count(*) as weeks, bool_and(to_at - from_at = interval '7 days') as of_seven_days, count(distinct from_at) as distinct from weeks;
select min(from_at) <= pawl.now() and max(from_at) > pawl.now() as this_and_next from weeks;
select add_event();
select clock('57 days'), add_event();
select count(*) as rest from pawl.event_rest;
select count(*) as events from pawl.audit;

-- No retention ran for a while: events without a week are kept all the same, and their week is not created.
select clock('100 days'), add_event();
select count(*) as rest from pawl.event_rest;
select pawl.prune_audit(100, '90 days') as deleted;
select count(*) as weeks, (select count(*) from pawl.event_rest) as rest from weeks;

-- Old enough: not shown at once, dropped when all of the week is.
select clock('145 days'), pawl.prune_audit(100, '90 days');
select count(*) as events from pawl.audit;
select count(*) as events from pawl.event;
select clock('160 days'), pawl.prune_audit(100, '90 days');
select count(*) as events from pawl.event;
select to_regclass('pawl.event_before') as first;
-- The default partition has no week: a row at a time.
select clock('191 days');
select pawl.prune_audit(100, '90 days') as deleted;
select count(*) as events from pawl.event;
-- Time that goes back, because the clock ran ahead: what happens from then on is shown (audit_clock.sql).
select clock('1 day'), add_event(), pawl.prune_audit(100, '90 days');
select count(*) as events, (select count(*) from pawl.audit) as shown from pawl.event;

-- Partitions that cannot be created or dropped are left to the next call.
select pawl.partition_make('pawl.kept_audit', '2026-01-07'), pawl.partition_make('pawl.kept_audit', '2026-01-05');
select name, from_at, to_at from pawl.partitions('pawl.kept_audit');
select pawl.partitions_drop('pawl.kept_audit', '2026-01-11 23:59:59'), pawl.partitions_drop('pawl.kept_audit', '2026-01-12');
