-- tables.sql - money: who has how much, and every step that led there.
--
-- The ledger is insert-only: txn (one row per operation that was decided) and entry (one row per wallet that it
-- changed). A wallet's last entry says how it stands; the wallet's own row, which never changes, is what is locked.
-- What was captured of a hold is the sum of its captures. How often rows change:
--
--     asset           insert once; an asset's emit_to changes when an operator says so
--     wallet          insert only
--     txn, entry      insert only
--     hold            insert once, updated once, when it ends
--     seal            insert only, one row per block of transactions
--     seal_mark, verified   one row each, updated by the periodic tasks
--
-- There is no mutable row per wallet: while a transaction with an id stays open, vacuum may not remove old versions of
-- such a row, and each posting would walk over all of them.

create schema wallet;

create table wallet.asset (
  id integer generated always as identity primary key,
  code text not null unique,
  emit_to text, -- domain of the bus that gets a command for each posted transaction; null: none
  constraint asset_code_check check (code ~ '^[A-Z][A-Z0-9_.:-]{0,31}$')
);

-- The wallet "@system" of an asset is striped: several rows, of which a batch takes one that is not locked. A new
-- stripe is opened when all are locked. Its number comes from a sequence, because any other would depend on what other
-- transactions are about to insert.
create sequence wallet.stripe_seq as integer minvalue 8 cycle;
create table wallet.wallet (
  id bigint generated always as identity primary key,
  owner text not null,
  asset_id integer not null references wallet.asset,
  stripe integer not null default 0,
  metadata jsonb,
  created_at timestamptz not null,
  constraint wallet_owner_key unique (owner, asset_id, stripe),
  constraint wallet_owner_check check (octet_length(owner) between 1 and 255)
);

-- A number per batch: the transactions of a batch are numbered from it upwards, so that one call allocates one number.
create sequence wallet.txn_seq increment 10000 minvalue 0 start 0;
-- Its lock means that a transaction has allocated numbers: see base/allocation.sql. No columns, no rows, no grants.
create table wallet.txn_allocation ();

-- One row per operation that was decided: posted, or refused for a reason that lies in the ledger. Its key is txn_id.
create table wallet.txn (
  id bigint primary key,
  at timestamptz not null,
  txn_id uuid not null, -- the caller's
  kind text not null,
  asset_id integer not null,
  wallet_id bigint not null, -- whose it is: who pays, holds or is credited; the first stripe stands for @system
  other_id bigint, -- the other side
  amount bigint not null, -- as posted; as asked for, if refused
  ref bigint, -- the hold that is captured, voided or expired; the transaction that is refunded
  request jsonb, -- what else was asked for, in words of the interface: metadata, expires_in_s, legs, whole
  refusal text, -- null: posted
  sentence text, -- of the refusal
  constraint txn_key unique (txn_id),
  -- PostgreSQL parses and plans check constraints anew for each insert statement, and one array constant costs half of
  -- thirteen constants.
  constraint txn_kind_check check (
    kind = any ('{open,topup,spend,transfer,multi,hold,capture,void,expire,refund,freeze,unfreeze,floor}'::text[])),
  constraint txn_amount_check check (amount >= 0)
);
create index txn_ref on wallet.txn (ref) where ref is not null;
-- A hold ends once, whatever key an operation comes with.
create unique index txn_hold_end on wallet.txn (ref) where kind in ('void', 'expire') and refusal is null;

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
  constraint entry_once unique (txn, wallet_id),
  constraint entry_held_check check (held >= 0)
);

create table wallet.hold (
  id bigint primary key, -- of its transaction
  wallet_id bigint not null,
  amount bigint not null,
  status text not null default 'OPEN',
  expires_at timestamptz,
  constraint hold_status_check check (status in ('OPEN', 'CAPTURED', 'VOIDED', 'EXPIRED'))
) with (fillfactor = 80);
create index hold_due on wallet.hold (expires_at) where status = 'OPEN' and expires_at is not null;
create index hold_open on wallet.hold (wallet_id) where status = 'OPEN';

-- A block of transactions that can no longer change: up to and with number upto, since the block before.
create table wallet.seal (
  id bigint primary key,
  upto bigint not null unique,
  rows integer not null,
  leaves bytea not null, -- eight bytes of the hash of each row, so that a changed one can be named
  hash bytea not null, -- of the block before, the bounds, and the hashes of all rows
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

-- Rows of the ledger are inserted, never updated or deleted: not by an application, not by the owner's functions.
create function wallet.never ()
  returns trigger
  language plpgsql
as $$
begin
  raise exception '% on wallet.% is not possible: the ledger is append-only', lower(tg_op), tg_table_name
    using errcode = 'QW009';
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

-- Types of functions. Operations under way, in arrays of one length: what wallet.post works with.
create type wallet.batch as (
  ords integer[], -- their positions in the caller's arrays
  kinds text[],
  txn_ids uuid[],
  assets integer[],
  mains bigint[],
  others bigint[],
  amounts bigint[],
  refs bigint[],
  requests jsonb[]
);
-- What operations do: an element per wallet and operation, in order; and how the wallet stands after it.
create type wallet.legs as (
  ords integer[], -- positions in the batch
  wallets bigint[],
  amounts bigint[],
  holds bigint[],
  mains boolean[], -- is it the wallet that the operation belongs to?
  balances bigint[],
  helds bigint[],
  floors bigint[],
  frozens boolean[],
  versions bigint[]
);
-- What operations refer to: an element per operation, null where there is nothing.
create type wallet.facts as (
  slots integer[], -- the same for operations that refer to the same hold or transaction
  lefts bigint[], -- how much of it was left before the batch
  totals bigint[],
  wholes boolean[], -- it can only be refunded whole
  refusals text[],
  sentences text[]
);
-- The row that every function of a posting returns.
create type wallet.verdict as (
  ord integer,
  txn_id uuid,
  is_new boolean,
  refusal text, -- null: posted
  sentence text, -- the reason of the refusal
  differs text, -- the field in which the key's first use differs: nothing was done
  kind text,
  owner text,
  other text,
  asset text,
  amount bigint,
  balance_before bigint, -- the owner's, when it was posted, as are the next four
  balance bigint,
  held bigint,
  available bigint,
  version bigint,
  balance_now bigint, -- the owner's, now
  number bigint,
  at timestamptz
);
