-- 0042_lease_length.sql - how long a lease is, and heartbeats of leases whose rows are locked.
--
-- Both are for rescues: a lease that ends later than its length from now was given by a clock that was ahead, and a worker whose heartbeat
-- found the row locked is alive.

alter table pawl.lease add column lease_ms integer; -- the length that was asked for last; null: before this migration

create table pawl.lease_extension (
  id bigint primary key,
  token bigint not null,
  until timestamptz not null
);
