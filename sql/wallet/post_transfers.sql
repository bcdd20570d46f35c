-- post_transfers.sql - several transfers of one asset that can all be posted, in as few statements as possible.
--
-- wallet.post_batch decides operations of any kind: each of its statements carries columns for references, holds, stripes and refusals,
-- and half of the time of a batch of transfers goes into them. Transfers read and write the same rows here. As wallet.post_transfer, this
-- function only posts. Every other outcome (a key that was used before or twice, an unknown or frozen wallet, insufficient funds, a sum
-- beyond 2^60, an asset with events, a stricter isolation level, an invalid argument) is left to wallet.post_arrays, which starts from the
-- beginning with the locks that are held by then. The invariants of post.sql hold on both paths.
-- Lock order: wallets by id, then unique keys of wallet.txn, as in wallet.post_arrays.

-- A sum of bigint that is a bigint; the sum of PostgreSQL is a numeric, which a running sum would make for each row.
create or replace aggregate wallet.sum_bigint (bigint) (sfunc = int8pl, stype = bigint, initcond = '0');

-- May these arguments be posted here, as far as their arrays tell?
create or replace function wallet.is_transfers (
  p_kinds text[], p_txn_ids uuid[], p_owners text[], p_amounts bigint[], p_others text[], p_assets text[], p_refs uuid[], p_requests jsonb[])
  returns boolean
  language plpgsql stable
as $$
declare
  v_count integer := cardinality(p_kinds);
  v_dims text := format('[1:%s]', v_count);
begin
  return coalesce(
    v_count between 2 and 10000 and p_refs is null and array_dims(p_kinds) = v_dims and array_remove(p_kinds, 'transfer') = '{}'
    and array_dims(p_txn_ids) = v_dims and array_dims(p_owners) = v_dims and array_dims(p_amounts) = v_dims and array_dims(p_others) = v_dims
    and (p_assets is null or array_dims(p_assets) = v_dims and array_remove(p_assets, p_assets[1]) = '{}')
    and (p_requests is null or array_dims(p_requests) = v_dims)
    and current_setting('transaction_isolation') = 'read committed', false);
end
$$;

-- The columns of wallet.post, which calls it after wallet.is_transfers.
create or replace function wallet.post_transfers (
  p_txn_ids uuid[], p_owners text[], p_amounts bigint[], p_others text[], p_assets text[], p_requests jsonb[], p_atomic boolean)
  returns table (
    ord integer, txn_id uuid, is_new boolean, refusal text, sentence text, differs text, kind text, owner text, other text,
    asset text, amount bigint, balance_before bigint, balance bigint, held bigint, available bigint, version bigint,
    balance_now bigint, number bigint, at timestamptz)
  language plpgsql set search_path = wallet, pawl, pg_temp
  set plan = transfers
as $$
#variable_conflict use_column
declare
  c_skew constant interval := interval '5 s'; -- as in wallet.post_batch
  v_count integer := cardinality(p_txn_ids);
  v_asset text := coalesce(p_assets[1], 'CREDIT');
  -- Plain variables: PL/pgSQL expands only these into arrays whose elements are read in constant time.
  v_txn_ids uuid[] := p_txn_ids;
  v_owners text[] := p_owners;
  v_amounts bigint[] := p_amounts;
  v_others text[] := p_others;
  v_requests jsonb[] := p_requests;
  v_asked record;
  v_locked record; -- the wallets by id, and their owners
  v_legs record;
  -- Of the legs, the payer's before the payee's. Null for 0, as in wallet.entry.
  v_wallets bigint[];
  v_balances bigint[];
  v_versions bigint[];
  v_helds bigint[];
  v_floors bigint[];
  v_now timestamptz;
  v_at timestamptz;
  v_base bigint;
  v_is_written boolean := false;
begin
  select bool_and(i.owner <> i.other and i.amount between 1 and 9007199254740991 and not starts_with(i.owner, '@')
                  and not starts_with(i.other, '@')) as good,
         count(*) filter (where i.owner <> i.other and i.amount > 0) as given, sum(i.amount) as sum
  into v_asked
  from (select v_owners[i] as owner, v_amounts[i] as amount, v_others[i] as other from generate_series(1, v_count) i offset 0) i;
  -- The keys are looked up before the locks, so that a repeat waits for none of them.
  select array_agg(w.id) as ids, array_agg(w.owner) as owners, min(w.asset_id) as asset_id
  into v_locked
  from (
    select w.id, w.owner, w.asset_id
    from wallet.wallet w
    where w.owner = any (v_owners || v_others) and w.stripe = 0
      and w.asset_id = (select a.id from wallet.asset a where a.code = v_asset and a.emit_to is null)
      and v_asked.good and v_asked.given = v_count and v_asked.sum <= 1152921504606846976
      and (select count(distinct t) = v_count from unnest(v_txn_ids) t)
      and (v_requests is null
           or not exists (select from unnest(v_requests) r
                          where r is not null
                            and (jsonb_typeof(r) = 'object' and r - 'metadata' = '{}' and not wallet.is_too_large(r)) is not true))
      and not exists (select from wallet.txn t where t.txn_id = any (v_txn_ids))
    order by w.id
    for no key update) w;
  if v_locked.ids is not null then
    -- Under the locks: the last entries, each with the time of its transaction, and what every leg adds to them.
    v_now := pawl.now();
    select array_agg(l.wallet) as wallets, array_agg(l.balance) as balances, array_agg(l.version) as versions, array_agg(l.held) as helds,
           array_agg(l.floor) as floors, max(l.at) as last_at, bool_or(l.trouble) as trouble
    into v_legs
    from (
      select l.*, wallet.is_trouble(l.balance, coalesce(l.held, 0), coalesce(l.floor, 0), coalesce(l.frozen, false)) as trouble
      from (
        select l.n, s.id as wallet, s.balance + wallet.sum_bigint(l.amount) over run as balance, s.version + row_number() over run as version,
               s.held, s.floor, s.frozen, s.at
        from (select 2 * i - 1 as n, v_owners[i] as owner, -v_amounts[i] as amount from generate_series(1, v_count) i
              union all
              select 2 * i, v_others[i], v_amounts[i] from generate_series(1, v_count) i) l
        join (select w.id, w.owner, e.*
              from unnest(v_locked.ids, v_locked.owners) w (id, owner)
              cross join lateral (
                select e.balance, e.version, e.held, e.floor, e.frozen,
                       (select t.at from wallet.txn t where t.id = e.txn and t.at <= v_now + c_skew) as at
                from wallet.entry e where e.wallet_id = w.id order by e.version desc limit 1) e) s on s.owner = l.owner
        window run as (partition by s.id order by l.n rows unbounded preceding)) l
      order by l.n) l;
    if cardinality(v_legs.wallets) = 2 * v_count and not v_legs.trouble then
      v_wallets := v_legs.wallets;
      v_balances := v_legs.balances;
      v_versions := v_legs.versions;
      v_helds := v_legs.helds;
      v_floors := v_legs.floors;
      v_at := greatest(v_now, v_legs.last_at);
      -- As pawl.allocation_lock(3), without the plans that calling it would start.
      perform pg_current_xact_id();
      lock table wallet.txn_allocation in row share mode;
      v_base := nextval('wallet.txn_seq') - 1; -- positions begin with 1
      begin -- first the keys: if another transaction has used one since, nothing but these has been written
        insert into wallet.txn (id, at, txn_id, kind, asset_id, wallet_id, other_id, amount, request)
        select v_base + i, v_at, v_txn_ids[i], 'transfer', v_locked.asset_id, v_wallets[2 * i - 1], v_wallets[2 * i], v_amounts[i],
               nullif(v_requests[i], '{}')
        from generate_series(1, v_count) i;
        v_is_written := true;
      exception when unique_violation then
        null;
      end;
    end if;
  end if;
  if v_is_written then
    insert into wallet.entry (wallet_id, version, txn, amount, balance, held, floor)
    select v_wallets[l], v_versions[l], v_base + (l + 1) / 2, case when l % 2 = 1 then -v_amounts[(l + 1) / 2] else v_amounts[l / 2] end,
           v_balances[l], v_helds[l], v_floors[l]
    from generate_series(1, 2 * v_count) l;
    return query
      select i, v_txn_ids[i], true, null::text, null::text, null::text, 'transfer', v_owners[i], v_others[i], v_asset, v_amounts[i],
             p.balance + v_amounts[i], p.balance, p.held, p.balance - p.held - p.floor, v_versions[2 * i - 1], p.balance, v_base + i, v_at
      from generate_series(1, v_count) i
      cross join lateral (
        select v_balances[2 * i - 1] as balance, coalesce(v_helds[2 * i - 1], 0) as held, coalesce(v_floors[2 * i - 1], 0) as floor) p;
    return;
  end if;
  return query
    select p.* from wallet.post_arrays(array_fill('transfer'::text, array[v_count]), p_txn_ids, p_owners, p_amounts, p_others, p_assets, null,
                                       p_requests, p_atomic) p;
end
$$;
