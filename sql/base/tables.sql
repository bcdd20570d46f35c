-- tables.sql - the schema pawl itself, and what pods have counted.
--
-- The files tables.sql of all modules are migration 1, in the order of schema.txt: the tables of a new database. The
-- runner creates the schema pawl, pawl.migration and pawl.definition before it (pg/migration_bootstrap). Times have no
-- default: they come from pawl.now(), which is a definition, so it is created after the tables.
--
--     tally   insert only, one row per flush of a pod and name; flushes delete rows older than two hours

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
