-- 0003_bus.sql - commands, where they wait, who has them, how they ended.
--
-- A command is one row in pawl.command, written once. Where it is now is a row in exactly one of five places, and moving is
-- deleting here and inserting there, in one transaction:
--
--     ready    may be claimed           insert at send, delete at claim
--     delayed  not yet                  insert at send or retry, delete when due
--     lease    a worker has it          insert at claim, delete at settle; updated by heartbeats of long work only
--     tsq      waits for an operator    insert when given up, delete when the operator decides
--     outcome  ended                    insert once, never changed
--
-- So no row is updated on the way of an ordinary command, nothing that is claimed, delayed or finished lies in the way of a
-- claim, and a snapshot held by somebody else leaves dead rows only where claims have passed already.

create sequence pawl.command_seq;
create sequence pawl.lease_seq;

-- Rarely written: once per domain.
create table pawl.domain (
  id smallint generated always as identity primary key,
  name text not null unique,
  constraint domain_name_check check (name ~ '^[A-Za-z0-9][A-Za-z0-9_.:-]{0,62}$')
);

-- One row per domain and type that does not follow the default; type '*' is the domain's own default.
create table pawl.retry_policy (
  domain_id smallint not null references pawl.domain,
  type text not null,
  delays_ms integer[] not null,
  primary key (domain_id, type),
  constraint retry_policy_delays_check check (cardinality(delays_ms) between 1 and 100)
);

create table pawl.batch (
  id bigint generated always as identity primary key,
  batch_id uuid not null unique,
  name text,
  on_complete jsonb,
  created_at timestamptz not null,
  sealed_at timestamptz,
  completed_at timestamptz,
  -- All commands up to this id have ended; only moves up, so that looking for the last one does not begin anew each time.
  ended_upto bigint not null default 0
);
create index batch_pruning on pawl.batch (completed_at) where completed_at is not null;

-- Written once, deleted by retention. No foreign keys: they would cost a look-up per row, and only pawl.send writes here.
create table pawl.command (
  id bigint primary key,
  domain_id smallint not null,
  command_id uuid not null,
  type text not null,
  payload jsonb not null,
  priority smallint not null,
  max_attempts smallint not null,
  reply_to text,
  correlation_id text,
  batch_id bigint,
  created_at timestamptz not null,
  constraint command_key unique (command_id, domain_id),
  constraint command_priority_check check (priority between 0 and 9),
  constraint command_attempts_check check (max_attempts between 1 and 1000)
);
create index command_batch on pawl.command (batch_id, id) where batch_id is not null;

-- pos is the place in line: the command's id at first, a later number of the same sequence when it comes back.
create table pawl.ready (
  domain_id smallint not null,
  priority smallint not null,
  pos bigint not null,
  id bigint not null,
  attempt smallint not null,
  max_attempts smallint not null,
  extras boolean not null, -- a reply or a batch waits for its end
  constraint ready_pkey primary key (domain_id, priority, pos)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 50000);
-- Only rows that came back: for finding one by its id.
create index ready_returned on pawl.ready (id) where pos <> id;

create table pawl.delayed (
  id bigint primary key,
  due timestamptz not null,
  domain_id smallint not null,
  priority smallint not null,
  attempt smallint not null,
  max_attempts smallint not null,
  extras boolean not null
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 50000);
create index delayed_due on pawl.delayed (due);

create table pawl.lease (
  id bigint primary key,
  token bigint not null, -- only grows; whoever names an old one changes nothing
  until timestamptz not null,
  domain_id smallint not null,
  priority smallint not null,
  attempt smallint not null,
  max_attempts smallint not null,
  extras boolean not null,
  cancel boolean not null default false
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 50000);
create index lease_until on pawl.lease (until);

create table pawl.tsq (
  id bigint primary key,
  since timestamptz not null,
  domain_id smallint not null,
  attempt smallint not null,
  error text
);
create index tsq_domain on pawl.tsq (domain_id, id);

create table pawl.outcome (
  id bigint primary key,
  domain_id smallint not null,
  status text not null,
  attempts smallint not null,
  ended_at timestamptz not null,
  token bigint, -- of the lease it was settled under: the same settle again is told the same
  result jsonb,
  error text,
  constraint outcome_status_check check (status in ('COMPLETED', 'FAILED', 'CANCELED'))
);

-- Append-only. Kept longer than its command, so the first row of each names it.
create table pawl.audit (
  id bigint not null,
  at timestamptz not null,
  domain_id smallint not null,
  attempt smallint not null,
  event text not null,
  command_id uuid, -- in the row SENT only
  actor text,
  details jsonb,
  constraint audit_event_check check (event in ('SENT', 'RECEIVED', 'COMPLETED', 'FAILED', 'RETRY_SCHEDULED', 'MOVED_TO_TSQ',
    'OPERATOR_RETRY', 'OPERATOR_CANCEL', 'OPERATOR_COMPLETE', 'CANCELED'))
) with (autovacuum_vacuum_insert_scale_factor = 0.2);
create index audit_command on pawl.audit (id);
