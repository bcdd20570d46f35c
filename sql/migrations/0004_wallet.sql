-- 0004_wallet.sql - money: who has how much, and every step that led there.
--
-- What happened is insert-only: txn (one row per operation that was decided) and entry (one row per wallet that it changed).
-- How it stands now is one narrow row per wallet, updated once per batch in place (no index on what changes). Everything in
-- state and hold can be computed from txn and entry, and wallet.verify does.
--
--     asset, wallet   insert once; an asset's emit_to changes when an operator says so
--     state           one update per wallet and batch, HOT
--     txn, entry      insert only
--     hold            insert once, one update per capture, void or expiry
--     seal            insert only, one row per block of transactions

create schema wallet;

create table wallet.asset (
  id smallint generated always as identity primary key,
  code text not null unique,
  emit_to text, -- domain of the bus that gets a command for each posted transaction; null: none
  constraint asset_code_check check (code ~ '^[A-Z][A-Z0-9_.:-]{0,31}$')
);

-- The wallet "@system" of an asset is striped: several rows, of which a batch takes one that nobody holds.
create table wallet.wallet (
  id bigint generated always as identity primary key,
  owner text not null,
  asset_id smallint not null references wallet.asset,
  stripe smallint not null default 0,
  metadata jsonb,
  created_at timestamptz not null,
  constraint wallet_owner_key unique (owner, asset_id, stripe),
  constraint wallet_owner_check check (octet_length(owner) between 1 and 255)
);

create table wallet.state (
  id bigint primary key references wallet.wallet,
  balance bigint not null,
  held bigint not null,
  floor bigint not null,
  version bigint not null, -- of the last entry
  frozen boolean not null,
  last_at timestamptz not null, -- no entry of a wallet is older than the one before it
  constraint state_held_check check (held >= 0)
) with (fillfactor = 50);

-- A number per batch: the transactions of a batch are numbered from it upwards, so that one call draws one number.
create sequence wallet.txn_seq increment 10000 minvalue 0 start 0;

-- One row per operation that was decided: posted, or refused for a reason that lies in the books. Its key is txn_id.
create table wallet.txn (
  id bigint primary key,
  at timestamptz not null,
  txn_id uuid not null,
  kind text not null,
  asset_id smallint not null,
  wallet_id bigint not null, -- whose it is: who pays, holds or is credited; the first stripe stands for @system
  other_id bigint,           -- the other side
  amount bigint not null,    -- as posted; as asked for, if refused
  ref bigint,                -- the hold that is captured, voided or expired; the transaction that is refunded
  request jsonb,             -- what else was asked for, in words of the interface: metadata, expires_in_s, legs, whole
  refusal text,              -- null: posted
  sentence text,             -- of the refusal
  constraint txn_key unique (txn_id),
  constraint txn_kind_check check (kind in ('open', 'topup', 'spend', 'transfer', 'multi', 'hold', 'capture', 'void', 'expire',
    'refund', 'freeze', 'unfreeze', 'floor')),
  constraint txn_amount_check check (amount >= 0)
);
create index txn_ref on wallet.txn (ref) where ref is not null;

-- One row per wallet and transaction: what changed, and how the wallet stood then. Version 0 is the opening.
-- held, floor and frozen are null when they are 0 or false, as nearly always: eight columns, so nulls cost nothing.
create table wallet.entry (
  wallet_id bigint not null,
  version bigint not null,
  txn bigint not null,
  amount bigint not null,
  balance bigint not null,
  held bigint,
  floor bigint,
  frozen boolean,
  constraint entry_pkey primary key (wallet_id, version),
  constraint entry_once unique (txn, wallet_id)
);

create table wallet.hold (
  id bigint primary key, -- of its transaction
  wallet_id bigint not null,
  amount bigint not null,
  captured bigint not null default 0,
  status text not null default 'OPEN',
  expires_at timestamptz,
  constraint hold_status_check check (status in ('OPEN', 'CAPTURED', 'VOIDED', 'EXPIRED')),
  constraint hold_captured_check check (captured between 0 and amount)
) with (fillfactor = 80);
create index hold_due on wallet.hold (expires_at) where status = 'OPEN' and expires_at is not null;
create index hold_open on wallet.hold (wallet_id) where status = 'OPEN';

-- Operations under way, in arrays of one length: what wallet.post works with.
create type wallet.batch as (
  ords integer[], -- their places in the caller's arrays
  kinds text[],
  txn_ids uuid[],
  assets smallint[],
  mains bigint[],
  others bigint[],
  amounts bigint[],
  refs bigint[],
  requests jsonb[]
);
-- What they do: an element per wallet and operation, in order.
create type wallet.legs as (
  ords integer[], -- places in the batch
  wallets bigint[],
  amounts bigint[],
  holds bigint[],
  mains boolean[] -- is it the wallet that the operation belongs to?
);

-- A block of transactions that can no longer change: up to and with number upto, since the block before.
create table wallet.seal (
  id bigint primary key,
  upto bigint not null unique,
  rows integer not null,
  leaves bytea not null, -- eight bytes of the hash of each row, so that a changed one can be named
  hash bytea not null,   -- of the block before, the bounds, and the hashes of all rows
  sealed_at timestamptz not null
);
-- One row: what the next seal may cover once all transactions before that one have ended.
create table wallet.seal_mark (
  id boolean primary key default true check (id),
  upto bigint not null,
  before bigint not null
);
insert into wallet.seal_mark (upto, before) values (-1, 0);
-- One row: up to where the last verification without a finding came. An incremental one begins there.
create table wallet.verified (
  id boolean primary key default true check (id),
  seal bigint not null,
  hash bytea not null,
  upto bigint not null,
  at timestamptz not null
);

-- The books are written, never rewritten: not by an application, not by the owner's own functions.
create function wallet.never ()
  returns trigger
  language plpgsql
as $$
begin
  raise exception '% on wallet.% is not possible: the books are append-only', lower(tg_op), tg_table_name using errcode = 'QW009';
end
$$;
create trigger entry_append_only before update or delete or truncate on wallet.entry
  for each statement execute function wallet.never();
create trigger txn_append_only before update or delete or truncate on wallet.txn
  for each statement execute function wallet.never();
create trigger seal_append_only before update or delete or truncate on wallet.seal
  for each statement execute function wallet.never();
create trigger wallet_append_only before update or delete or truncate on wallet.wallet
  for each statement execute function wallet.never();
