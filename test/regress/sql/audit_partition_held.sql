-- audit_partition_held.sql - a partition that an operator has detached, or that a view of a user depends on, stops no retention.
\set VERBOSITY terse

-- Detached, the table keeps its name; the week gets a partition again, under another one.
select pawl.partition_make('pawl.kept_audit', '2026-01-07');
alter table pawl.kept_audit detach partition pawl.kept_audit_20260105;
select pawl.partition_make('pawl.kept_audit', '2026-01-07'), pawl.partition_make('pawl.kept_audit', '2026-01-07');
select name, from_at, to_at from pawl.partitions('pawl.kept_audit');
alter table pawl.kept_audit detach partition pawl.kept_audit_20260105_2;
select pawl.partition_make('pawl.kept_audit', '2026-01-07');
select name, from_at, to_at from pawl.partitions('pawl.kept_audit');

-- So commands that ended in that week are deleted.
select count(*) from pawl.send('shop', array['a'], array['1']::jsonb[]);
select s.status from pawl.claim(pawl.domain_find('shop'), 1, 60000, array_fill(0::bigint, array[10]), null, 'w') c,
  pawl.settle(array[c.id], array[c.token], '{complete}') s;
update pawl.command set created_at = '2026-01-06';
update pawl.outcome set ended_at = '2026-01-06', started_at = '2026-01-06';
select gone from pawl.prune_commands(10, interval '1 day', null);
select count(*) from pawl.kept_audit_20260105_3;

-- A view on a table that is to be dropped: that one stays until the view is gone, and retention goes on.
create view stays as select id from pawl.kept_audit_20260105_3;
select pawl.partition_make('pawl.kept_audit', '2026-01-14');
select pawl.partitions_drop('pawl.kept_audit', '2026-01-26');
select name from pawl.partitions('pawl.kept_audit');
drop view stays;
select pawl.partitions_drop('pawl.kept_audit', '2026-01-26');
select count(*) from pawl.partitions('pawl.kept_audit');
