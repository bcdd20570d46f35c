-- tables.sql - schedules: commands and processes that are sent at given times.
--
--     schedule         one row per schedule, at most 10000; written by operators only
--     schedule_state   one narrow row beside each: when it fires next, and how the last firing went; updated by each
--                      firing and by operators, so two small rows per firing beside those of the command itself
--
-- A monitor reads schedule_state by its index on due_at, so schedules that are not due cost nothing.

create table pawl.schedule (
  id bigint primary key generated always as identity,
  name text not null unique,
  salt uuid not null default gen_random_uuid(), -- the ids of its commands follow from it; no role reads it
  domain text not null,
  type text not null,
  payload jsonb not null,
  is_process boolean not null,
  cron text,
  timezone text,
  every_ms bigint,
  jitter_ms integer not null,
  missed text not null,
  overlap text not null,
  created_at timestamptz not null,
  changed_at timestamptz not null,
  constraint schedule_times_check check ((cron is null) = (timezone is null) and (cron is null) <> (every_ms is null)),
  constraint schedule_missed_check check (missed in ('skip', 'once', 'all')),
  constraint schedule_overlap_check check (overlap in ('allow', 'skip', 'queue'))
);

create table pawl.schedule_state (
  id bigint primary key,                 -- of the schedule
  next_at timestamptz,                   -- the next time; null: paused
  due_at timestamptz,                    -- the same and its jitter, or when a firing that failed is tried again
  computed_at timestamptz not null,      -- when next_at was computed
  paused_at timestamptz,
  last_at timestamptz,                   -- the last time that it fired for
  last_id uuid,                          -- the last command or process, also of a run by an operator
  skipped_at timestamptz,                -- the last time that was skipped, because the last command had not ended
  failing_since timestamptz,             -- null: the last firing succeeded
  error text,
  constraint schedule_state_paused_check check ((paused_at is null) = (next_at is not null and due_at is not null))
) with (fillfactor = 50, autovacuum_vacuum_threshold = 1000);
create index schedule_state_due on pawl.schedule_state (due_at) where due_at is not null;
-- The clock was set back if one of these is in the future.
create index schedule_state_computed on pawl.schedule_state (computed_at) where due_at is not null;
create index schedule_state_failing on pawl.schedule_state (failing_since) where failing_since is not null;
