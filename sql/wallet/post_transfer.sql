-- post_transfer.sql - one transfer that can be posted, in as few statements as possible.
--
-- Most of the time of a call with one operation goes into starting plans: a statement costs about 15,000 instructions before it reads
-- a row, an index scan 10,000, and wallet.post_batch runs thirteen statements. A single transfer reads and writes the same
-- rows here with five. This function only posts. Every other outcome (a key that was used before, an unknown or frozen wallet,
-- insufficient funds, an asset with events, a stricter isolation level, an invalid argument) is left to wallet.post_arrays, which
-- starts from the beginning with the locks that are held by then. The invariants of post.sql hold on both paths.
-- Lock order: wallets by id, then unique keys of wallet.txn, as in wallet.post_arrays.

-- May this transfer be posted here, as far as its arguments tell? One expression, so that it is inlined.
create or replace function wallet.is_transfer (p_txn_id uuid, p_owner text, p_amount bigint, p_other text, p_request jsonb)
  returns boolean
  language sql stable
as $$
  select (p_txn_id is not null and p_amount between 1 and 9007199254740991 and p_owner <> p_other
          and left(p_owner, 1) <> '@' and left(p_other, 1) <> '@'
          and (p_request is null or jsonb_typeof(p_request) = 'object' and p_request - 'metadata' = '{}' and not wallet.is_too_large(p_request))
          and current_setting('transaction_isolation') = 'read committed') is true
$$;

-- The columns of wallet.post, which calls it for arrays of one. p_lock_ms: as in wallet.post.
create or replace function wallet.post_transfer (
  p_txn_id uuid, p_owner text, p_amount bigint, p_other text, p_asset text, p_request jsonb, p_atomic boolean,
  p_lock_ms integer default null)
  returns setof wallet.verdict
  language plpgsql security definer set search_path = wallet, pawl, pg_temp
  set plan = ordered_cached
as $$
declare
  v_asset text := coalesce(p_asset, 'CREDIT');
  v_locked bigint[]; -- the two wallets by id: each its id, its asset, and 1 for the payer or 2 for the payee
  v_now timestamptz;
  v_payer record; -- the last entries
  v_payee record;
  v_balance bigint; -- the payer's, after the transfer
  v_available bigint;
  v_number bigint;
  v_at timestamptz;
begin
  if p_lock_ms is not null then
    perform wallet.lock_limit(p_lock_ms);
  end if;
  if wallet.is_transfer(p_txn_id, p_owner, p_amount, p_other, p_request) then
    -- The key is looked up before the locks, so that a repeat waits for none of them.
    v_locked := array(
      select array[w.id, w.asset_id, case when w.owner = p_owner then 1 else 2 end]
      from wallet.wallet w
      where w.owner = any (array[p_owner, p_other]) and w.stripe = 0
        and w.asset_id = (select a.id from wallet.asset a where a.code = v_asset and a.emit_to is null)
        and not exists (select from wallet.txn t where t.txn_id = p_txn_id)
      order by w.id
      for no key update);
  end if;
  if cardinality(v_locked) = 6 then -- from here on under the locks
    v_now := pawl.now();
    select * into strict v_payer from wallet.last_entry(v_locked[v_locked[1][3]][1], v_now + wallet.clock_skew());
    select * into strict v_payee from wallet.last_entry(v_locked[3 - v_locked[1][3]][1], v_now + wallet.clock_skew());
    v_balance := v_payer.balance - p_amount;
    v_available := v_balance - coalesce(v_payer.held, 0) - coalesce(v_payer.floor, 0);
    if v_available >= 0 and v_payee.balance + p_amount <= 9007199254740991 and (v_payer.frozen or v_payee.frozen) is not true then
      v_number := wallet.txn_base() + 1;
      v_at := greatest(v_now, v_payer.at, v_payee.at);
      -- First the key: if another transaction has used it since, nothing has been written yet.
      insert into wallet.txn (id, at, txn_id, kind, asset_id, wallet_id, other_id, amount, request)
      values (v_number, v_at, p_txn_id, 'transfer', v_locked[1][2], v_payer.wallet_id, v_payee.wallet_id, p_amount, nullif(p_request, '{}'))
      on conflict on constraint txn_key do nothing;
      if found then
        insert into wallet.entry (wallet_id, version, txn, amount, balance, held, floor)
        values (v_payer.wallet_id, v_payer.version + 1, v_number, -p_amount, v_balance, v_payer.held, v_payer.floor),
               (v_payee.wallet_id, v_payee.version + 1, v_number, p_amount, v_payee.balance + p_amount, v_payee.held, v_payee.floor);
        return next row(1, p_txn_id, true, null, null, null, 'transfer', p_owner, p_other, v_asset, p_amount, v_payer.balance, v_balance,
                        coalesce(v_payer.held, 0), v_available, v_payer.version + 1, v_balance, v_number, v_at)::wallet.verdict;
        return;
      end if;
    end if;
  end if;
  return query
    select p.* from wallet.post_arrays(array['transfer'], array[p_txn_id], array[p_owner], array[p_amount], array[p_other],
      case when p_asset is not null then array[p_asset] end, null, case when p_request is not null then array[p_request] end, p_atomic) p;
end
$$;
