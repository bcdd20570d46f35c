-- queries.sql - the statements that C sends for the ledger: `-- name: NAME` begins sql_wallet_NAME.

-- name: balance_at
-- A wallet's state at a time. $1 owner, $2 time, $3 asset
select b.balance, b.held, b.balance - b.held - coalesce(b.floor, 0) as available, b.floor, b.version
from wallet.balance_at($1::text, $2::text::timestamptz, $3::text) b

-- name: emit_to
-- A command for each transaction in an asset. $1 asset, $2 domain, null: none
select wallet.emit_to($1::text, $2::text)

-- name: entries
-- Entries of a wallet, newest first. $1 owner, $2 asset, $3 limit, $4 before this number, $5 kind, $6 since, $7 until;
-- from $4 on null is no limit
select e.number, e.version, e.txn_id, e.kind, e.amount, e.balance, e.held, e.other, e.metadata, pawl.micros(e.at) as at
from wallet.entries($1::text, $2::text, $3::integer, $4::bigint, $5::text, $6::text::timestamptz,
                    $7::text::timestamptz) e

-- name: get
-- The present state of wallets; a row for each that exists. $1 owners, $2 assets or null
select l.ord, l.owner, l.asset, l.balance, l.held, l.available, l.floor, l.version, l.frozen, l.metadata,
       pawl.micros(l.created_at) as created_at
from wallet.get($1::text[], $2::text[]) l

-- name: hold
-- One hold as JSON; null: there is none. $1 its txn id
select (select (t - '{hold,entries,kind,other,ref,status}'::text[]) || (t -> 'hold') || jsonb_build_object('remaining',
          case when t -> 'hold' ->> 'status' = 'OPEN'
               then (t -> 'hold' ->> 'amount')::bigint - (t -> 'hold' ->> 'captured')::bigint else 0 end)
        from wallet.transaction($1::uuid) t
        where t ? 'hold')::text as value

-- name: hold_page
-- Holds, newest first. $1 owner or the beginning of one and "*", $2 asset, $3 status, $4 since, $5 until, $6 ids below,
-- $7 limit; all but the limit may be null. A row without an id ends a page behind which there may be more.
select coalesce(h.id, 0) as id, h.searched_to, h.txn_id, h.owner, h.asset, h.amount, h.captured, h.remaining, h.status,
       pawl.micros(h.expires_at) as expires_at, pawl.micros(h.at) as at
from wallet.hold_page($1::text, $2::text, $3::text, $4::text::timestamptz, $5::text::timestamptz, $6::bigint, $7::integer) h
order by h.searched_to desc

-- name: list
-- All wallets of owner $1, by asset.
select l.ord, l.owner, l.asset, l.balance, l.held, l.available, l.floor, l.version, l.frozen, l.metadata,
       pawl.micros(l.created_at) as created_at
from (select array_agg(a.asset) as assets, array_agg($1::text) as owners from wallet.assets_of($1::text) a) o
cross join lateral wallet.get(o.owners, o.assets) l
where o.assets is not null
order by l.asset

-- name: locked
-- The owners of those wallets that another transaction has locked now. The others are locked for the moment of this
-- statement. $1 owners
with named as materialized (
  select w.id, w.owner
  from (select distinct o from unnest($1::text[]) o where o <> '@system') o (owner)
  cross join lateral (select w.id, w.owner from wallet.wallet w where w.owner = o.owner offset 0) w
), free as materialized (
  select w.id from wallet.wallet w where w.id = any (array(select n.id from named n))
  order by w.id for no key update skip locked
)
select distinct n.owner as value from named n where not exists (select from free f where f.id = n.id)

-- name: open
-- Open a wallet, or read the existing one. $1 owner, $2 asset, $3 floor, $4 metadata, $5 txn id or null, $6 lock_timeout
-- in milliseconds or null
select o.floor, o.is_new, o.differs, pawl.micros(o.at) as created_at,
       (select l.balance from wallet.get(array[o.owner], array[o.asset]) l) as balance_now
from wallet.open(array[$1::text], array[$2::text], array[$3::bigint], array[$4::jsonb], array[$5::uuid], $6::integer) o

-- name: post
-- Decide operations, in order; a row for each. Columns that repeat an operation's own arguments are null. $1 kinds, $2
-- txn ids, $3 owners, $4 amounts as text, because some have none, $5 others, $6 assets, $7 refs, $8 requests; arrays
-- from $5 on may be null; $9 lock_timeout in milliseconds or null; $10: skip wallets that another transaction has locked
select p.ord, p.is_new, p.refusal, p.sentence, p.differs, case when p.differs is not null then p.kind end as kind,
       case when n.is_set or p.refusal = 'busy' then p.owner end as owner, case when n.is_set then p.other end as other,
       case when n.is_set then p.asset end as asset, case when n.is_set then p.amount end as amount,
       p.balance_before, p.balance, p.held, p.available, p.version, p.balance_now, pawl.micros(p.at) as at
from wallet.post($1::text[], $2::uuid[], $3::text[], $4::text::bigint[], $5::text[], $6::text[], $7::uuid[],
                 $8::jsonb[], false, $9::integer, $10::boolean) p
cross join lateral (select p.kind not in ('topup', 'spend', 'transfer', 'hold') as is_set) n

-- name: post_transfer
-- Decide one transfer. Columns that repeat its arguments are null. $1 txn id, $2 owner, $3 amount, $4 other, $5 asset
-- or null, $6 request or null, $7 lock_timeout in milliseconds or null
select p.ord, p.is_new, p.refusal, p.sentence, p.differs, case when p.differs is not null then p.kind end as kind,
       null::text as owner, null::text as other, null::text as asset, null::bigint as amount,
       p.balance_before, p.balance, p.held, p.available, p.version, p.balance_now, pawl.micros(p.at) as at
from wallet.post_transfer($1::uuid, $2::text, $3::bigint, $4::text, $5::text, $6::jsonb, false,
                          $7::integer) p

-- name: seal
-- Seal transactions that can no longer change; how many. $1 limit
select wallet.seal($1::integer)::bigint as value

-- name: statement
-- Entries of a wallet, oldest first. $1 owner, $2 asset, $3 since, $4 until, $5 after this number, $6 limit; $3 to $5
-- may be null
select s.number, s.version, s.txn_id, s.kind, s.amount, s.balance, s.held, s.other, s.metadata, pawl.micros(s.at) as at
from wallet.statement($1::text, $2::text, $3::text::timestamptz, $4::text::timestamptz, $5::bigint, $6::integer) s

-- name: transaction
-- One transaction as JSON; null: there is none. $1 txn id, $2 patterns of owners that the caller is bound to, or null: it has the entries of others, with the
-- balance of @system
select case when $2::text[] is null or t is null then t
            else jsonb_set(t, '{entries}', coalesce((
                   select jsonb_agg(e order by n) from jsonb_array_elements(t -> 'entries') with ordinality u (e, n)
                   where wallet.bound_owner(e ->> 'owner', $2::text[])), '[]')) end::text as value
from wallet.transaction($1::uuid) t

-- name: transaction_entries
-- What a transaction changed, as a JSON array. It never changes. $1 txn id
select (wallet.transaction($1::uuid) -> 'entries')::text as value

-- name: transaction_page
-- Transactions, newest first. $1 owner or the beginning of one and "*", $2 asset, $3 kind, $4 posted or refused, $5 since,
-- $6 until, $7 ids below, $8 limit; as hold_page.
select coalesce(t.id, 0) as id, t.searched_to, t.txn_id, t.kind, t.status, t.owner, t.other, t.asset, t.amount, t.ref, t.refusal,
       t.reason, pawl.micros(t.at) as at
from wallet.transaction_page($1::text, $2::text, $3::text, $4::text, $5::text::timestamptz, $6::text::timestamptz, $7::bigint,
                             $8::integer) t
order by t.searched_to desc

-- name: verify_plan
-- What there is to verify, in pieces. $1 incremental
select p.step, p.low, p.high, p.work from wallet.verify_plan($1::boolean) p

-- name: verify_record
-- All was well up to seal $1.
select wallet.verify_record($1::bigint)

-- name: verify_step
-- One piece of a verification; a row per finding. $1 step, $2 low, $3 high
select v.what, v.which, v.sentence from wallet.verify_step($1::text, $2::bigint, $3::bigint) v

-- name: wallet_page
-- Wallets, newest first. $1 owner or the beginning of one and "*", $2 asset, $3 since, $4 until, $5 ids below, $6 limit;
-- as hold_page.
select coalesce(w.id, 0) as id, w.searched_to, w.owner, w.asset, w.balance, w.held, w.available, w.floor, w.version, w.frozen,
       pawl.micros(w.created_at) as created_at
from wallet.wallet_page($1::text, $2::text, $3::text::timestamptz, $4::text::timestamptz, $5::bigint, $6::integer) w
order by w.searched_to desc
