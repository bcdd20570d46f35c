-- 0001_base.sql - the schema is closed to the public; operations that failed for good have a table.
-- Schema pawl itself and pawl.migration are made before the first migration: see pg/query/migration_bootstrap.sql.
-- Times have no default: they come from pawl.now(), which is a definition and so is younger than any table.

revoke all on schema pawl from public;

-- One row per operation that failed. Written once by put, then a few times in its life: two updates per try (claim,
-- settle), at most three tries, every five minutes. Small: more than a hundred open rows are an alert.
create table pawl.failed_operations (
  id             bigserial   primary key,
  operation_type text        not null check (char_length(operation_type) between 1 and 50),
  operation_key  text        not null check (char_length(operation_key) between 1 and 200),
  operation_data jsonb       not null,
  error_message  text        not null,
  error_code     text        not null check (char_length(error_code) <= 50),
  retry_count    integer     not null default 0 check (retry_count >= 0), -- tries begun, so a try that killed its pod counts
  created_at     timestamptz not null,
  last_retry_at  timestamptz,
  status         text        not null default 'pending' check (status in ('pending', 'retrying', 'failed', 'resolved')),
  lease          bigint      not null default 0,                          -- only grows; settle names it
  lease_until    timestamptz,
  next_retry_at  timestamptz not null,
  check ((status = 'retrying') = (lease_until is not null))
);

-- The same operation is kept once while it is unresolved.
create unique index failed_operations_key on pawl.failed_operations (operation_type, operation_key) where status <> 'resolved';
-- Waiting: by type first, so that a claim never walks past due letters which nobody here can handle.
create index failed_operations_waiting on pawl.failed_operations (operation_type, next_retry_at, id) where status = 'pending';
-- Running: to find the leases of dead pods.
create index failed_operations_running on pawl.failed_operations (lease_until) where status = 'retrying';
-- Open: for people, newest first, without the resolved ones that pile up below.
create index failed_operations_open on pawl.failed_operations (id) where status <> 'resolved';
