-- 0011_bus_operations.sql - retry schedules without holes, reply queues that pawl made, batches that expire, listings by status.

-- A NULL delay once moved a command from its lease to no table at all.
update pawl.retry_policy r
set delays_ms = array(
  select greatest(coalesce(u.delay_ms, 60000), 0) from unnest(r.delays_ms) with ordinality u (delay_ms, n) order by u.n);
alter table pawl.retry_policy
  drop constraint retry_policy_delays_check,
  add constraint retry_policy_delays_check check (
    cardinality(delays_ms) between 1 and 100 and array_ndims(delays_ms) = 1 and array_lower(delays_ms, 1) = 1
    and array_position(delays_ms, null) is null and 0 <= all (delays_ms)),
  add constraint retry_policy_type_check check (type = '*' or type ~ '^[A-Za-z0-9][A-Za-z0-9_.:-]{0,99}$') not valid;

-- Queues that pawl.send made because a reply_to named them: dropped again when they have been idle for long. A queue that its
-- reader made is not here and is never dropped. last_msg_id and used_at are written by retention only.
create table pawl.reply_queue (
  name text primary key,
  created_at timestamptz not null,
  used_at timestamptz not null, -- when last_msg_id was last seen to change
  last_msg_id bigint not null default 0
);

-- A batch that was opened and abandoned is sealed when its time is over.
alter table pawl.batch add column expired boolean not null default false;
create index batch_open on pawl.batch (created_at) where sealed_at is null;
create index batch_sealed on pawl.batch (id) where sealed_at is not null and completed_at is null;

-- Listings of FAILED and CANCELED do not walk over what was completed.
create index outcome_not_completed on pawl.outcome (status, id) where status <> 'COMPLETED';
create index outcome_not_completed_domain on pawl.outcome (domain_id, status, id) where status <> 'COMPLETED';
