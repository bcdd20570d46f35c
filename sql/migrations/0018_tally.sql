-- 0018_tally.sql - what processes counted, for alerts about all of them together.

-- One row per flush of a process and name; never updated. A repeated flush meets its own key. Rows older than two hours are deleted by
-- the flushes that follow.
create table pawl.tally (
  at     timestamptz not null,
  name   text        not null check (name in ('handlers', 'handlers_failed', 'rate_limited')),
  count  bigint      not null check (count > 0),
  source uuid        not null,
  flush  bigint      not null,
  primary key (source, flush, name)
);
create index tally_at on pawl.tally (name, at) include (count);
