-- 0030_retention_clock.sql - when retention last ran, so that it notices a clock that jumps ahead.

-- One row. at: the time of the last retention, to the minute. jumped_at: set while retention waits, to the time at which it saw that the
-- clock was more than a day past `at`.
create table pawl.retention_clock (
  single    boolean     primary key default true check (single),
  at        timestamptz not null,
  jumped_at timestamptz
) with (fillfactor = 20);
insert into pawl.retention_clock (at) values (clock_timestamp());
