-- tables.sql - commands, where each of them is, how it ended, what happened to it; batches, policies, dead letters.
--
-- A command is one row in pawl.command, written once. Where it is now is a row in exactly one of six places, and a move
-- deletes the row here and inserts one there, in one transaction:
--
--     ready    may be claimed           insert at send, delete at claim
--     delayed  not due yet              insert at send or retry, delete when due
--     parked   another has its key      insert at claim, delete when the key is passed on (order keys)
--     lease    a worker has it          insert at claim, or at send, delete at settle; updated by heartbeats of long work only
--     tsq      waits for an operator    insert when given up, delete when the operator decides
--     outcome  ended                    insert once, never changed
--
-- So no row is updated on the way of an ordinary command, a claim reads no row that is claimed, delayed or finished,
-- and a snapshot that another transaction holds leaves dead rows only where claims have passed already. How often the
-- other rows change:
--
--     domain_name, retry_policy, dead_letter_route    rarely: one row per domain, policy or route
--     batch               insert, and three updates: sealed, completed, ended_upto from time to time
--     batch_handover      insert and delete, while commands of a sealed batch end beside each other
--     order_turn          insert when a free key is taken, update per command with that key, delete when none is parked
--     order_handover      insert and delete, rare
--     gate, pause, gate_limit    rarely: by operators
--     line                insert when the first command of a type and key is held back, update per claim that visits it, delete when empty
--     gate_use            one update per limit and claim of a domain with a rate
--     slot                insert and delete per command of a domain with a limit on what runs
--     lease_extension     insert and delete, rare
--     progress            only of handlers that report: one row, updated at most about once a second while its handler
--                         runs, heap-only, because what changes has no index; deleted by retention
--     snooze              only of commands that were snoozed: one row, updated by each snooze, heap-only; deleted by retention
--     event               insert only; retention drops whole partitions
--     bulk_operation      one row per operation of an operator over many commands, updated once per chunk of it
--     bulk_chunk          insert only, one row per chunk; deleted with its operation by retention
--     bulk_locked         insert and delete, rare: what another transaction had locked
--     control_event       insert only, one row per decision of an operator; deleted by retention
--     unique_key          only of commands with a unique key: inserted at the send, updated when the next command takes the key, deleted by retention
--     replaced_payload    only where a payload was replaced before its command began: inserted once, deleted by retention
--     kept_key, kept_audit    insert once by retention, deleted by retention
--     reply_queue         insert once, updated by retention
--     failed_operations   insert once, two updates per try; small: more than a hundred open rows are an alert
--     retention_clock, audit_start, reply_queue_bound, least_age    settings of retention: once a minute at most
--     queue_lock, send_lock, command_allocation    always empty
--
-- A duplicate of a unique command may change two columns of the command before it begins (bus/unique.sql): its payload, and the time of one that waits
-- for its order key. Nothing else updates pawl.command.
--
-- There are no foreign keys: each would cost an index lookup per row, and only pawl's functions write here.

-- Numbers of commands. A command's number is its position in the queue; one that returns to the queue takes a new
-- number as its position.
create sequence pawl.command_seq;
-- Its lock means that a transaction has allocated numbers: see base/allocation.sql. No columns, no rows, no grants.
create table pawl.command_allocation ();

-- One row per domain, or a few if several transactions sent to a new domain at the same time: the number follows from
-- the name, so any number of transactions may write the same (id, name), and no constraint makes one wait for another's
-- commit.
create table pawl.domain_name (
  row bigint generated always as identity primary key,
  id integer not null,
  name text not null,
  constraint domain_name_check check (name ~ '^[A-Za-z0-9][A-Za-z0-9_.:-]{0,62}$')
);
create index domain_name_name on pawl.domain_name (name, id);
create index domain_name_id on pawl.domain_name (id, name);
-- One row per domain, for reading.
create view pawl.domain as
  select distinct on (d.id) d.id, d.name from pawl.domain_name d order by d.id, d.row;

-- One row per domain and type that does not follow the default; type '*' is the domain's own default.
create table pawl.retry_policy (
  domain_id integer not null,
  type text not null,
  delays_ms integer[], -- null: those of the domain, or the default
  order_key text, -- what a command in the troubleshooting queue does with its key; null: as the domain says, else hold
  primary key (domain_id, type),
  constraint retry_policy_type_check check (type = '*' or type ~ '^[A-Za-z0-9][A-Za-z0-9_.:-]{0,99}$'),
  -- An array with a hole or a NULL would leave a command without a next place.
  constraint retry_policy_delays_check check (
    cardinality(delays_ms) between 1 and 100 and array_ndims(delays_ms) = 1 and array_lower(delays_ms, 1) = 1
    and array_position(delays_ms, null) is null and 0 <= all (delays_ms)),
  constraint retry_policy_order_key_check check (order_key in ('hold', 'release')),
  constraint retry_policy_not_empty_check check (delays_ms is not null or order_key is not null)
);

create table pawl.batch (
  id bigint generated always as identity primary key,
  batch_id uuid not null unique, -- the caller's
  name text,
  on_complete jsonb, -- the command that is sent when all have ended
  created_at timestamptz not null,
  sealed_at timestamptz, -- no command joins it any more
  completed_at timestamptz,
  ended_upto bigint not null default 0, -- all its commands up to this id have ended; the next search starts here
  expired boolean not null default false -- retention has sealed it because its sender did not
);
create index batch_pruning on pawl.batch (completed_at) where completed_at is not null;
create index batch_open on pawl.batch (created_at) where sealed_at is null;
create index batch_sealed on pawl.batch (id) where sealed_at is not null and completed_at is null;

-- Batches of which a command has ended while another transaction had them locked. pawl.batch_sweep completes them.
create table pawl.batch_handover (
  number bigint generated always as identity primary key,
  id bigint not null -- of the batch
);
create index batch_handover_id on pawl.batch_handover (id);

-- Deleted by retention.
create table pawl.command (
  id bigint primary key,
  domain_id integer not null,
  command_id uuid not null, -- the sender's
  type text not null,
  payload jsonb not null,
  priority smallint not null,
  max_attempts smallint not null,
  reply_to text, -- a queue, a command's domain, or a process's response
  correlation_id text,
  batch_id bigint, -- pawl.batch.id
  created_at timestamptz not null,
  payload_bytes integer, -- as text, if that is 1000 bytes or more: a payload of a few bytes may be a gigabyte as text
  sender text,
  order_key text, -- commands of a domain with the same key run one at a time, in the order of sending
  due_at timestamptz, -- of a delayed command with an order key: it is delayed when its turn comes
  constraint command_key unique (command_id, domain_id),
  constraint command_priority_check check (priority between 0 and 9),
  constraint command_attempts_check check (max_attempts between 1 and 1000)
);
create index command_batch on pawl.command (batch_id, id) where batch_id is not null;

create table pawl.ready (
  domain_id integer not null,
  priority smallint not null,
  pos bigint not null, -- the command's id at first, a later number of the same sequence when it returns
  id bigint not null,
  attempt smallint not null,
  max_attempts smallint not null,
  -- A reply or a batch waits for its end, or its payload is large: the claim reads pawl.command too.
  extras boolean not null,
  order_key text, -- not null: the command must get the key before it may be leased
  line bigint, -- not null: a pause or a limit holds it back; its priority is -1, and that of pawl.line counts
  constraint ready_pkey primary key (domain_id, priority, pos)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 50000);
-- Only rows that returned: for finding one by its id.
create index ready_returned on pawl.ready (id) where pos <> id;
create index ready_order on pawl.ready (domain_id, order_key, id) where order_key is not null;
create index ready_line on pawl.ready (line, pos) where line is not null;

create table pawl.delayed (
  id bigint primary key,
  due timestamptz not null,
  domain_id integer not null,
  priority smallint not null,
  attempt smallint not null,
  max_attempts smallint not null,
  extras boolean not null -- as in pawl.ready
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 50000);
create index delayed_due on pawl.delayed (due);
create index delayed_domain on pawl.delayed (domain_id, id);

create table pawl.lease (
  id bigint primary key,
  token bigint not null, -- random; a call that names another one changes nothing
  until timestamptz not null,
  domain_id integer not null,
  priority smallint not null,
  attempt smallint not null,
  max_attempts smallint not null,
  extras boolean not null, -- as in pawl.ready
  cancel boolean not null default false, -- requested: the worker's next heartbeat sees it
  started_at timestamptz not null,
  worker text,
  lease_ms integer -- as requested last; a lease that ends later than that from now was given by a clock that was ahead
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 50000);
create index lease_until on pawl.lease (until);

-- Heartbeats that found the lease's row locked: its worker is alive. Rescues read it. Not unique by lease: one that is written waits for none.
create table pawl.lease_extension (
  number bigint generated always as identity primary key,
  id bigint not null, -- of the command
  token bigint not null,
  until timestamptz not null,
  lease_ms integer
);
create index lease_extension_id on pawl.lease_extension (id);

-- Attempts that ended because their worker was lost. Claims are careful with such a command until another attempt has ended otherwise
-- (pawl.claim_careful). A row stays until retention deletes the command.
create table pawl.lost_attempt (
  id bigint primary key, -- of the command
  attempt smallint not null -- the last one that was lost
) with (autovacuum_vacuum_scale_factor = 0.1, autovacuum_vacuum_threshold = 1000);

-- How often a command was snoozed, and since when (bus/snooze.sql).
create table pawl.snooze (
  id bigint primary key, -- of the command
  count integer not null,
  since timestamptz not null
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.1, autovacuum_vacuum_threshold = 1000);

-- The newest report of a handler (bus/progress.sql). It stays when the attempt or the command ends.
create table pawl.progress (
  id bigint primary key, -- of the command
  attempt smallint not null, -- that reported it
  percent smallint,
  text text,
  step text, -- of a process, the step that reported it, as it is shown; null: it is of the command
  at timestamptz not null,
  constraint progress_percent_check check (percent between 0 and 100)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.1, autovacuum_vacuum_threshold = 1000);

create table pawl.tsq (
  id bigint primary key,
  since timestamptz not null,
  domain_id integer not null,
  attempt smallint not null,
  error text
);
create index tsq_domain on pawl.tsq (domain_id, id);

create table pawl.outcome (
  id bigint primary key,
  domain_id integer not null,
  status text not null,
  attempts smallint not null,
  ended_at timestamptz not null,
  token bigint, -- of the lease it was settled under: a repeated settle gets the same verdict
  result jsonb,
  error text,
  -- Of the attempt that was settled. Null: an operator or a cancellation ended it, so RECEIVED and the end are events.
  started_at timestamptz,
  worker text,
  constraint outcome_status_check check (status in ('COMPLETED', 'FAILED', 'CANCELED'))
);
-- Listings of FAILED and CANCELED do not read what was completed.
create index outcome_not_completed on pawl.outcome (status, id) where status <> 'COMPLETED';
create index outcome_not_completed_domain on pawl.outcome (domain_id, status, id) where status <> 'COMPLETED';

-- One row per key that a command has.
create table pawl.order_turn (
  domain_id integer not null,
  order_key text not null,
  id bigint not null, -- the command that has the key
  low bigint not null, -- no command with an id up to this one is parked
  primary key (domain_id, order_key)
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 10000);

-- Commands whose key another command has. Inserted and deleted by transactions that have locked the key's row in
-- pawl.order_turn; deleted also by a cancellation.
create table pawl.parked (
  domain_id integer not null,
  order_key text not null,
  id bigint not null,
  primary key (domain_id, order_key, id)
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 50000);
create index parked_domain on pawl.parked (domain_id, id);

-- Keys whose command has ended while the next one could not be chosen, because another transaction had a row locked.
-- pawl.requeue_due passes them on.
create table pawl.order_handover (
  number bigint generated always as identity primary key,
  domain_id integer not null,
  id bigint not null -- the command that has ended
);
create index order_handover_id on pawl.order_handover (id);

-- Domains that are paused or limited, and their commands that are held back (bus/gate.sql, bus/gate_claim.sql).

-- One row per domain that has a pause, a limit or a line. A claim of such a domain locks it; claims of all others only look for it.
create table pawl.gate (
  domain_id integer primary key,
  is_shut boolean not null default false, -- the whole domain is paused
  has_running boolean not null default false, -- some limit counts what runs: each lease has a row in pawl.slot
  adopt_until timestamptz -- claims that had not seen the limit have ended by then; until then leases without slots may appear
) with (fillfactor = 50);

-- One row per pause; type '*' is the whole domain.
create table pawl.pause (
  domain_id integer not null,
  type text not null,
  reason text,
  operator text not null,
  at timestamptz not null,
  primary key (domain_id, type)
);

-- One row per limit; type '*' is the whole domain. per_key: for each limit key by itself.
create table pawl.gate_limit (
  domain_id integer not null,
  type text not null,
  per_key boolean not null,
  running integer, -- at most so many run; null: any number
  rate integer, -- at most so many begin in period_s seconds; null: any number
  period_s integer not null,
  burst integer, -- null: never more than `rate` in any period; else so many begin at once after a rest, and `rate` per period from then on
  primary key (domain_id, type, per_key),
  constraint gate_limit_running_check check (running between 1 and 100000),
  constraint gate_limit_rate_check check (rate between 1 and 1000000),
  constraint gate_limit_period_check check (period_s in (1, 60)),
  constraint gate_limit_burst_check check (burst is null or burst between 1 and 1000000 and rate is not null)
);

-- How much of a rate is used: one row per limit, or per limit and key. Of no use any more from idle_at on.
create table pawl.gate_use (
  domain_id integer not null,
  type text not null,
  per_key boolean not null,
  limit_key text not null,
  slices bigint[], -- without a burst: hundredths of the period in which commands began, and how many
  counts integer[],
  tokens double precision, -- with a burst: how many could begin at the time of tokens_at
  tokens_at timestamptz,
  idle_at timestamptz not null,
  primary key (domain_id, type, per_key, limit_key)
) with (fillfactor = 50);

-- Commands that are held back wait in lines: one for each type, limit key and priority. Lines take turns.
create table pawl.line (
  id bigint generated always as identity primary key,
  domain_id integer not null,
  limit_key text not null, -- empty: none
  type text not null,
  priority smallint not null,
  turn_at timestamptz not null, -- not to be visited before; infinity: when a command of its key ends
  low bigint not null default 0, -- nothing up to this position is left in it
  constraint line_key unique (limit_key, domain_id, type, priority) -- in this order: it is no way to find the lines of a domain
) with (fillfactor = 70);
create index line_turn on pawl.line (domain_id, type, priority, turn_at);

-- One row per lease of a domain with a limit on what runs. The next claim deletes those whose lease has ended.
create table pawl.slot (
  domain_id integer not null,
  id bigint not null, -- of the command
  token bigint not null, -- of the lease
  type text not null,
  limit_key text not null,
  primary key (domain_id, id)
) with (autovacuum_vacuum_scale_factor = 0.1, autovacuum_vacuum_threshold = 1000);

-- Events that do not follow from other rows (retries, rescues, troubleshooting, operators). The view pawl.audit
-- (bus/audit.sql) shows them with those that do. Partitions are weeks of `at`. event_before: everything up to the week
-- after next. event_rest: rows of no other partition, because no monitor has run for weeks.
create table pawl.event (
  id bigint not null,
  at timestamptz not null,
  domain_id integer not null,
  attempt smallint not null,
  event text not null,
  command_id uuid, -- of a command that is not in pawl.command
  actor text,
  details jsonb,
  constraint event_event_check check (
    event in ('RECEIVED', 'COMPLETED', 'FAILED', 'RETRY_SCHEDULED', 'MOVED_TO_TSQ', 'OPERATOR_RETRY',
              'OPERATOR_CANCEL', 'OPERATOR_COMPLETE', 'CANCELED', 'CONTINUED', 'PAYLOAD_REPLACED', 'RESCHEDULED', 'SNOOZED'))
) partition by range (at);
create index event_id on pawl.event (id);
create index event_at on pawl.event (at);
do $$
begin
  execute format('create table pawl.event_before partition of pawl.event for values from (minvalue) to (%L)',
    date_bin('7 days', now(), '2001-01-01 00:00:00+00') + interval '14 days');
end
$$;
create table pawl.event_rest partition of pawl.event default;
-- No primary key, because nothing identifies an event. Without a replica identity its rows could not be deleted in a
-- database with a publication for all tables.
alter table pawl.event replica identity full;
alter table pawl.event_before replica identity full;
alter table pawl.event_rest replica identity full;

-- Decisions of operators about what is no command and no process (bus/control.sql): domains, limits, schedules, keys, bulk operations.
-- A decision about all commands or processes that match a filter: see app/bulk.sql. What came of it are sums over its chunks.
create table pawl.bulk_operation (
  id bigint generated always as identity primary key,
  operation_id uuid not null unique, -- the caller's
  noun text not null,
  action text not null,
  filter jsonb not null,
  argument jsonb, -- of the action: the result of complete, the step of retry, the version of move
  operator text not null,
  reason text,
  upto bigint not null, -- what was sent later is not concerned
  below bigint not null, -- what has this number or a greater one has been read
  chunk integer not null, -- at most so many in the next transaction
  created_at timestamptz not null,
  stepped_at timestamptz, -- null: not begun
  read_at timestamptz, -- everything has been read; what was locked is tried again
  ended_at timestamptz,
  error text, -- why it ended before everything was read
  constraint bulk_operation_noun_check check (noun in ('command', 'process')),
  constraint bulk_operation_chunk_check check (chunk between 1 and 1000)
);
create index bulk_operation_open on pawl.bulk_operation (id) where ended_at is null;
create table pawl.bulk_chunk (
  operation bigint not null, -- pawl.bulk_operation.id
  number bigint generated always as identity,
  matched integer not null,
  decided integer not null,
  known integer not null, -- the same had been decided before, or it had ended by itself
  refused integer not null,
  refusals jsonb, -- some of them: {id, why}
  primary key (operation, number)
);
create table pawl.bulk_locked (
  operation bigint not null,
  id bigint not null, -- of the command
  primary key (operation, id)
);

-- What a listing of commands filters by, beside domain and status. Null: not by this.
create type pawl.command_filter as (
  type text,
  correlation_id text,
  order_key text,
  since timestamptz,
  until timestamptz,
  domains integer[]
);

create table pawl.control_event (
  id bigint generated always as identity primary key,
  at timestamptz not null,
  subject text not null check (subject ~ '^[a-z]{1,20}$'), -- 'domain', 'schedule'
  name text not null, -- which one
  action text not null check (action ~ '^[a-z_]{1,30}$'), -- 'pause', 'delete'
  operator text not null, -- who decided, as pawl.operator_name names it: a person, an API key
  login text not null, -- the database's
  reason text,
  details jsonb -- what was decided
);
create index control_event_about on pawl.control_event (subject, name, id);

-- What the audit still says about a command that retention has deleted: at most the events SENT, RECEIVED and the end.
-- Partitions are weeks of ended_at, made by retention when it writes the first row of a week.
create table pawl.kept_audit (
  id bigint not null,
  domain_id integer not null,
  command_id uuid not null,
  created_at timestamptz not null,
  sender text,
  started_at timestamptz, -- null: RECEIVED and the end are rows of pawl.event
  worker text,
  ended_at timestamptz not null,
  status text not null,
  attempts smallint not null,
  error text,
  primary key (id, ended_at)
) partition by range (ended_at);

-- One row: the audit shows no event older than this. Only grows.
create table pawl.audit_start (
  single boolean primary key default true,
  at timestamptz not null,
  constraint audit_start_single_check check (single)
);
insert into pawl.audit_start (at) values ('-infinity');

-- Keys of commands outlive their payloads: one row per command that retention has deleted, some 130 bytes with its
-- indexes.
create table pawl.kept_key (
  command_id uuid not null,
  domain_id integer not null,
  type text not null,
  payload_hash bytea not null, -- SHA-256 of the payload as text
  status text not null,
  ended_at timestamptz not null,
  duplicate_of uuid, -- the id was sent as a duplicate of this command; status is DUPLICATE, and ended_at when it was sent
  duplicate text, -- what became of the other command: kept, replaced or moved
  primary key (command_id, domain_id)
);
create index kept_key_ended on pawl.kept_key (ended_at);
-- Ids of duplicates that pawl made for one call: only its own tries repeat them, within an hour.
create index kept_key_brief on pawl.kept_key (ended_at) where payload_hash = '\x00';

-- Unique keys: one row per key, with the command that has it, or had it last. Whether it has it still follows from the scope and from where the command
-- is (bus/unique.sql), so what moves commands does not read this.
create table pawl.unique_key (
  hash uuid primary key, -- of domain, type and key
  id bigint not null, -- of the command
  command_id uuid not null,
  domain_id integer not null,
  type text not null,
  key text not null,
  scope text not null,
  until timestamptz, -- of the scope `time`
  constraint unique_key_scope_check check (scope in ('queued', 'active', 'time') and (scope = 'time') = (until is not null))
) with (fillfactor = 80);
create index unique_key_id on pawl.unique_key (id);
create index unique_key_until on pawl.unique_key (until) where until is not null;

-- An item of a send with unique keys, and the verdict on it (bus/unique.sql).
create type pawl.unique_item as (
  ord integer, command_id uuid, is_named boolean, type text, payload jsonb, bytes integer, delay_ms bigint, priority integer, max_attempts integer,
  reply_to text, correlation_id text, order_key text, keyed boolean, key text, hash uuid, scope text, span interval, action text);
create type pawl.send_verdict as (ord integer, command_id uuid, is_new boolean, status text, refusal text, duplicate text);

-- Commands whose payload was replaced before they began, with the hash of the one that they were sent with: a repeat of the first send has it.
create table pawl.replaced_payload (
  id bigint primary key, -- of the command
  payload_hash bytea not null
);

-- Queues that pawl.send made because a reply_to named them: dropped again when they have been idle for long. A queue
-- that its reader made is not here and is never dropped.
create table pawl.reply_queue (
  name text primary key,
  creator text, -- the sender whose share it uses; null: it was made again for a reply
  created_at timestamptz not null,
  used_at timestamptz not null, -- when last_msg_id was last seen to change
  last_msg_id bigint not null default 0
);

-- One row: PAWL_REPLY_QUEUES_MAX, how many queues pawl creates because a reply_to names them, as a monitor has written
-- it last.
create table pawl.reply_queue_bound (
  single boolean primary key default true,
  most integer not null,
  constraint reply_queue_bound_single_check check (single),
  constraint reply_queue_bound_most_check check (most between 1 and 100000)
);
insert into pawl.reply_queue_bound (most) values (1000);

-- A row that a transaction inserts and deletes again locks the queue's name until the transaction ends
-- (pgmq.acquire_queue_lock).
create table pawl.queue_lock (
  name text primary key
);

-- The same for a sender's key (pawl.send_keys). Without WAL: after a crash no transaction is left that would hold one.
create unlogged table pawl.send_lock (
  id uuid primary key
);

-- One row. Retention reads it to notice a clock that jumps ahead.
create table pawl.retention_clock (
  single boolean primary key default true check (single),
  at timestamptz not null, -- of the last retention, to the minute
  jumped_at timestamptz -- set while retention waits: when it saw that the clock was more than a day past `at`
) with (fillfactor = 20);
insert into pawl.retention_clock (at) values (clock_timestamp());

-- The least age of what retention deletes: pawl.prune_check reads it, pawl.least_age_set writes it. The rows are the
-- least values of the settings PAWL_KEEP_..._DAYS and PAWL_BATCH_EXPIRY.
create table pawl.least_age (
  what text primary key,
  age interval not null check (age between interval '0' and interval '36500 days')
);
insert into pawl.least_age (what, age) values
  ('commands', '1 day'), ('keys', '1 day'), ('audit', '1 day'), ('replies', '1 day'),
  ('dead letters', '1 day'), ('batches', '1 s');

-- Dead letters: one row per operation that failed. At most three tries, every five minutes.
create table pawl.failed_operations (
  id bigserial primary key,
  operation_type text not null check (char_length(operation_type) between 1 and 50),
  operation_key text not null check (char_length(operation_key) between 1 and 200),
  operation_data jsonb not null,
  error_message text not null,
  error_code text not null check (char_length(error_code) <= 50),
  retry_count integer not null default 0 check (retry_count >= 0), -- tries begun, so a try that killed its pod counts
  created_at timestamptz not null,
  last_retry_at timestamptz,
  status text not null default 'pending' check (status in ('pending', 'retrying', 'failed', 'resolved')),
  lease bigint not null default 0, -- only grows; settle names it
  lease_until timestamptz,
  next_retry_at timestamptz not null,
  check ((status = 'retrying') = (lease_until is not null))
);
-- The same operation is kept once while it is unresolved.
create unique index failed_operations_key on pawl.failed_operations (operation_type, operation_key)
  where status <> 'resolved';
-- By type first, so that a claim never reads due letters which this pod cannot handle.
create index failed_operations_waiting on pawl.failed_operations (operation_type, next_retry_at, id)
  where status = 'pending';
-- To find the leases of dead pods.
create index failed_operations_running on pawl.failed_operations (lease_until) where status = 'retrying';
-- For people, newest first, without the resolved ones.
create index failed_operations_open on pawl.failed_operations (id) where status <> 'resolved';
-- For retention.
create index failed_operations_resolved on pawl.failed_operations ((coalesce(last_retry_at, created_at)))
  where status = 'resolved';

-- One row per type whose dead letters are sent to the bus when they are due. Written by an administrator.
create table pawl.dead_letter_route (
  operation_type text primary key check (char_length(operation_type) between 1 and 50),
  domain text not null check (domain ~ '^[A-Za-z0-9][A-Za-z0-9_.:-]{0,62}$'),
  command_type text not null check (char_length(command_type) between 1 and 200)
);
