-- 0021_order_key.sql - order keys: commands of one domain with the same key run one at a time, in the order of sending.
--
-- A command with a key is sent as any other: a row in pawl.command and one in pawl.ready, which names the key. A claim that finds it gives
-- it the key if no other command has it, and else moves it to pawl.parked, where no claim reads. The end of the command that has the key
-- moves the next one back to pawl.ready in the same transaction (sql/bus/order.sql). Rows of commands without a key are as wide as
-- before: their new columns are bits of a null bitmap that was there or fits into the row header.

-- due_at: of a delayed command with an order key. It is delayed when its turn comes, and until then it keeps its place.
alter table pawl.command add column order_key text, add column due_at timestamptz;

-- Not null: the command has to get the key before it may be leased.
alter table pawl.ready add column order_key text;
create index ready_order on pawl.ready (domain_id, order_key, id) where order_key is not null;

-- One row per key that a command has. Inserted when a claim gives a free key to a command, updated when the next command gets it,
-- deleted when none is parked.
create table pawl.order_turn (
  domain_id integer not null,
  order_key text not null,
  id bigint not null,  -- the command that has the key
  low bigint not null, -- no command with an id up to this one is parked
  primary key (domain_id, order_key)
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 10000);

-- Commands whose key another command has. Inserted and deleted by transactions that have locked the key's row in pawl.order_turn; deleted
-- also by a cancellation.
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

-- What a command in the troubleshooting queue does with its key. Null: as the domain's own policy says, and that: hold.
alter table pawl.retry_policy
  alter column delays_ms drop not null,
  add column order_key text,
  add constraint retry_policy_order_key_check check (order_key in ('hold', 'release')),
  add constraint retry_policy_not_empty_check check (delays_ms is not null or order_key is not null);
