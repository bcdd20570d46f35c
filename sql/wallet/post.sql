-- post.sql - posting: arrays of operations in, one verdict per operation out, in one transaction.
--
-- Invariants
--   1. The wallets are locked before anything is decided, in the order of their ids; see lock.sql.
--   2. A key decides once. It is looked up before the locks, so that a repeat waits for no lock, and again under them, so that
--      concurrent requests with the same key, which lock the same wallets, see each other. Two bodies under one key that lock different
--      wallets conflict at the unique key, and one of them is retried (40001).
--   3. An operation is posted whole or not at all; its entries sum to zero in each asset (holds change no balance).
--   4. No operation that moves or holds money takes a wallet's available amount (balance - held - floor) below zero. Raising the floor may:
--      then the wallet pays nothing until it has received enough, except for what was held before.
--   5. A refusal for a reason in the ledger is kept under its key and returned to every repeat, whatever has changed since. What was
--      never decided (unknown wallet, hold or transaction; a locked wallet; an invalid request) writes nothing.
--   6. Rows are inserted, never updated; only a hold's row changes, once, when it ends. So the cost of a posting does not grow
--      while other transactions stay open.
-- A batch is decided as a whole: the running sum of each wallet tells whether every operation can succeed in order. Only if one
-- cannot, or operations refer to others, a loop decides them one by one. Both write with the same statements.
-- Functions with more than an expression in them are PL/pgSQL, because it caches plans; the settings of wallet.post_arrays apply to
-- all that it calls. A plan that was made when the tables were small stays cached when they are large, so no plan starts with the
-- tables: rows are looked up one by one (lateral, limit 1), and joins that read a whole table are off.
-- Lock order: wallets by id, stripes of @system (never waited for), unique keys in the order of the keys. A call of several chunks inserts its keys chunk by
-- chunk: with another call that has the same keys for other wallets it can deadlock (40P01), after which one of the two is run again.
-- Errors: QW001 arrays of different length or a value out of range; QW002 atomic, and one was refused; 40001 run again;
-- 42501 see treasury.sql.

-- Splits a call into chunks that can be decided together; returns the position of each chunk's first operation. A repeated key
-- starts a new chunk, and so does an operation that refers to an earlier one of its chunk, because it must see the rows of that one.
-- freeze, unfreeze and floor change how a wallet is judged: each is a chunk of its own. 128 operations move at most 2^60 in or out of
-- a wallet, which is far from the range of bigint and from the floor of a stripe; larger chunks need amounts that are known and small.
create or replace function wallet.post_chunks (p_kinds text[], p_txn_ids uuid[], p_amounts bigint[], p_refs uuid[])
  returns integer[]
  language plpgsql immutable
as $$
declare
  v_count integer := cardinality(p_kinds);
  v_starts integer[] := array[1];
  v_start integer := 1;
  v_size integer := v_count;
  v_row record;
begin
  if v_count = 1 then
    return v_starts;
  elsif v_count > 128
    and (select sum(coalesce(u.amount, case when u.kind in ('multi', 'capture', 'refund') then 9007199254740991 end))
         from unnest(p_kinds, p_amounts) u (kind, amount)) > 1152921504606846976 then
    v_size := 128;
  elsif p_refs is null and not p_kinds && array['freeze', 'unfreeze', 'floor'] and (select count(distinct t) = v_count from unnest(p_txn_ids) t) then
    return v_starts; -- nearly always
  end if;
  for v_row in
    select e.ord, max(e.earlier) as earlier
    from (
      select t.ord, max(t.ord) filter (where t.is_key) over (partition by t.token order by t.ord, t.is_key
                                                             rows between unbounded preceding and 1 preceding) as earlier
      from (select u.ord, u.txn_id as token, true as is_key from unnest(p_txn_ids) with ordinality u (txn_id, ord)
            union all
            select u.ord, u.ref, false from unnest(p_refs) with ordinality u (ref, ord) where u.ref is not null) t
      union all
      select u.ord + n, u.ord - 1 + n from unnest(p_kinds) with ordinality u (kind, ord) cross join generate_series(0, 1) n
      where u.kind in ('freeze', 'unfreeze', 'floor') and u.ord + n <= v_count
    ) e
    where e.earlier > 0 and e.earlier < e.ord
    group by e.ord
    order by e.ord
  loop
    while v_row.ord - v_start >= v_size loop
      v_start := v_start + v_size;
      v_starts := v_starts || v_start;
    end loop;
    if v_row.earlier >= v_start then
      v_start := v_row.ord;
      v_starts := v_starts || v_start;
    end if;
  end loop;
  while v_count + 1 - v_start > v_size loop
    v_start := v_start + v_size;
    v_starts := v_starts || v_start;
  end loop;
  return v_starts;
end
$$;

-- Posts chunk by chunk.
create or replace function wallet.post_run (
  p_kinds text[], p_txn_ids uuid[], p_owners text[], p_amounts bigint[], p_others text[], p_assets text[], p_refs uuid[],
  p_requests jsonb[], p_atomic boolean, p_skip_locked boolean)
  returns setof wallet.verdict
  language plpgsql
as $$
declare
  v_starts integer[] := wallet.post_chunks(p_kinds, p_txn_ids, p_amounts, p_refs);
  v_from integer;
  v_upto integer;
begin
  if cardinality(v_starts) = 1 then
    return query select p.* from wallet.post_batch(p_kinds, p_txn_ids, p_owners, p_amounts, p_others, p_assets, p_refs, p_requests,
                                                      case when p_atomic then 1 end, p_skip_locked) p order by p.ord;
    return;
  end if;
  if not p_skip_locked then -- without waiting no order is needed
    perform wallet.post_lock_all(p_owners, p_others, p_refs, p_requests);
  end if;
  for i in 1 .. cardinality(v_starts) loop
    v_from := v_starts[i];
    v_upto := coalesce(v_starts[i + 1] - 1, cardinality(p_kinds));
    return query
      select p.ord + v_from - 1, p.txn_id, p.is_new, p.refusal, p.sentence, p.differs, p.kind, p.owner, p.other, p.asset, p.amount,
             p.balance_before, p.balance, p.held, p.available, p.version, p.balance_now, p.number, p.at
      from wallet.post_batch(p_kinds[v_from:v_upto], p_txn_ids[v_from:v_upto], p_owners[v_from:v_upto], p_amounts[v_from:v_upto],
        p_others[v_from:v_upto], p_assets[v_from:v_upto], p_refs[v_from:v_upto], p_requests[v_from:v_upto],
        case when p_atomic then v_from end, p_skip_locked) p
      order by p.ord;
  end loop;
end
$$;

-- Any operations: checks them, then decides and writes.
create or replace function wallet.post_arrays (
  p_kinds text[], p_txn_ids uuid[], p_owners text[], p_amounts bigint[], p_others text[], p_assets text[], p_refs uuid[],
  p_requests jsonb[], p_atomic boolean, p_skip_locked boolean default false)
  returns setof wallet.verdict
  language plpgsql set search_path = wallet, pawl, pg_temp
  set plan = posting
as $$
begin
  perform wallet.post_check(p_kinds, p_txn_ids, p_owners, p_amounts, p_others, p_assets, p_refs, p_requests);
  if current_setting('transaction_isolation') = 'read committed' then
    if cardinality(wallet.post_chunks(p_kinds, p_txn_ids, p_amounts, p_refs)) = 1 then -- nearly always
      return query select p.* from wallet.post_batch(p_kinds, p_txn_ids, p_owners, p_amounts, p_others, p_assets, p_refs, p_requests,
                                                     case when p_atomic then 1 end, p_skip_locked) p order by p.ord;
      return;
    end if;
    return query select p.* from wallet.post_run(p_kinds, p_txn_ids, p_owners, p_amounts, p_others, p_assets, p_refs, p_requests,
                                                 coalesce(p_atomic, false), p_skip_locked) p;
    return;
  end if;
  -- The snapshot may be older than the locks: then the entry's or the transaction's key says so.
  begin
    return query select p.* from wallet.post_run(p_kinds, p_txn_ids, p_owners, p_amounts, p_others, p_assets, p_refs, p_requests,
                                                 coalesce(p_atomic, false), p_skip_locked) p;
  exception when unique_violation then
    raise exception 'could not serialize access: a wallet was changed by another transaction' using errcode = '40001';
  end;
end
$$;

/*
 * The arguments of each kind; kind.sql has the same table for the checks, and refuses the others.
 *
 * kind      owner             other                amount            ref          request
 * topup     payee             -                    amount            -            metadata
 * spend     payer             -                    amount            -            metadata
 * transfer  payer             payee                amount            -            metadata
 * multi     -                 -                    -                 -            legs [{owner, amount, asset}], metadata
 * hold      owner             -                    amount            -            expires_in_s, metadata
 * capture   -                 payee; null: @system amount; null: all the hold     metadata
 * void      -                 -                    -                 the hold     metadata
 * refund    -                 -                    amount; null: all transaction  metadata
 * freeze    owner             -                    -                 -            metadata      likewise unfreeze
 * floor     owner             -                    -                 -            floor, metadata
 *
 * p_lock_ms: the lock_timeout from here to the end of the transaction; null: leave it as it is.
 * p_skip_locked: for callers that share one transaction. An operation on a wallet that another transaction has locked gets the refusal
 * "busy" and the owner of that wallet, and writes nothing. Its caller posts it again, alone.
 */
create or replace function wallet.post (
  p_kinds text[], p_txn_ids uuid[], p_owners text[], p_amounts bigint[], p_others text[] default null,
  p_assets text[] default null, p_refs uuid[] default null, p_requests jsonb[] default null, p_atomic boolean default false,
  p_lock_ms integer default null, p_skip_locked boolean default false)
  returns table (
    ord integer, txn_id uuid, is_new boolean,
    refusal text,       -- null: posted
    sentence text,      -- the reason of the refusal
    differs text,       -- the field in which the key's first use differs: nothing was done
    kind text, owner text, other text, asset text, amount bigint,
    balance_before bigint, balance bigint, held bigint, available bigint, version bigint, -- the owner's, when it was posted
    balance_now bigint, -- the owner's, now
    number bigint, at timestamptz)
  language plpgsql security definer set search_path = wallet, pawl, pg_temp
as $$
begin
  if p_lock_ms is not null then
    perform wallet.lock_limit(p_lock_ms);
  end if;
  if p_skip_locked then
    return query select p.* from wallet.post_arrays(p_kinds, p_txn_ids, p_owners, p_amounts, p_others, p_assets, p_refs, p_requests, p_atomic, true) p;
  elsif (p_kinds = '{transfer}' and cardinality(p_txn_ids) = 1 and p_txn_ids[1] is not null and cardinality(p_owners) = 1 and p_owners[1] is not null
      and cardinality(p_amounts) = 1 and p_amounts[1] is not null and cardinality(p_others) = 1 and p_others[1] is not null
      and (p_assets is null or cardinality(p_assets) = 1 and p_assets[1] is not null) and p_refs is null
      and (p_requests is null or cardinality(p_requests) = 1 and p_requests[1] is not null)) is true then
    return query select p.* from wallet.post_transfer(p_txn_ids[1], p_owners[1], p_amounts[1], p_others[1], p_assets[1], p_requests[1], p_atomic) p;
  elsif cardinality(p_kinds) > 1 and wallet.is_transfers(p_kinds, p_txn_ids, p_owners, p_amounts, p_others, p_assets, p_refs, p_requests) then
    return query select p.* from wallet.post_transfers(p_txn_ids, p_owners, p_amounts, p_others, p_assets, p_requests, p_atomic) p;
  else
    return query select p.* from wallet.post_arrays(p_kinds, p_txn_ids, p_owners, p_amounts, p_others, p_assets, p_refs, p_requests, p_atomic) p;
  end if;
end
$$;
