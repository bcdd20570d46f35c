-- tables.sql - the schema pawl itself, and what pods have counted.
--
-- The files tables.sql of all modules are migration 1, in the order of schema.txt: the tables of a new database. The
-- runner creates the schema pawl, pawl.migration and pawl.definition before it (pg/migration_bootstrap). Times have no
-- default: they come from pawl.now(), which is a definition, so it is created after the tables.
--
--     tally         insert only, one row per flush of a pod and name; flushes delete rows older than two hours
--     stat          insert only: what a process has counted in a minute, one row per measure and label; deleted after
--                   14 days
--     stat_hour     insert, and an update where an hour is summed again; deleted after a year
--     stat_source   one row per process that counts: an update a minute, heap-only; deleted after a day without one
--     stat_clock    one row, updated once an hour

revoke all on schema pawl from public;

-- For alerts about all pods together. A repeated flush conflicts with its own key.
create table pawl.tally (
  at timestamptz not null,
  name text not null check (name in ('handlers', 'handlers_failed', 'rate_limited')),
  count bigint not null check (count > 0),
  source uuid not null, -- of the pod
  flush bigint not null, -- the pod's number of it
  primary key (source, flush, name)
);
create index tally_at on pawl.tally (name, at) include (count);

-- Numbers over time: pg/stat.h, base/stat.sql. A measure of a domain has the domain as its label, one of a route the
-- route; others ''.
create table pawl.stat (
  at timestamptz not null, -- the minute in which it was stored
  measure text not null,
  label text not null,
  source uuid not null, -- of the process
  flush bigint not null, -- the process's number of it
  count bigint not null check (count > 0),
  buckets bigint[], -- of a histogram of times, by pawl.stat_bounds(), without zeros at its end; null: a count
  primary key (measure, label, at, source, flush)
);
create index stat_at on pawl.stat (at); -- for retention, and for the sums of an hour

-- The same by hours, over all processes.
create table pawl.stat_hour (
  at timestamptz not null,
  measure text not null,
  label text not null,
  count bigint not null check (count > 0),
  buckets bigint[],
  primary key (measure, label, at)
);
create index stat_hour_at on pawl.stat_hour (at);

-- A repeated flush is recognised by its number, also when it comes in another minute.
create table pawl.stat_source (
  source uuid primary key,
  flush bigint not null, -- the last one that was stored
  at timestamptz not null
) with (fillfactor = 50);

-- One row: hours before this one are in stat_hour.
create table pawl.stat_clock (
  single boolean primary key default true check (single),
  summed_until timestamptz not null
) with (fillfactor = 20);
insert into pawl.stat_clock (summed_until) values (date_trunc('hour', clock_timestamp()));
