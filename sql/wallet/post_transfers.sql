-- post_transfers.sql - several transfers of one asset that can all be posted, in as few statements as possible.
--
-- wallet.post_batch decides operations of any kind: each of its statements carries columns for references, holds, stripes and refusals,
-- and half of the time of a batch of transfers goes into them. Transfers read and write the same rows here. As wallet.post_transfer, this
-- function only posts. Every other outcome (a key that was used before or twice, an unknown or frozen wallet, insufficient funds, a sum
-- beyond 2^60, an asset with events, a stricter isolation level, an invalid argument) is left to wallet.post_arrays, which starts from the
-- beginning with the locks that are held by then. The invariants of post.sql hold on both paths.
-- The locks are held until the commit, and a batch that has a wallet in common with another one waits for it. So everything that does not depend on
-- the state of the wallets comes before the locks.
-- Lock order: wallets by id, then unique keys of wallet.txn in their order, as in wallet.post_arrays.

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

-- What can be known before the locks, which other transactions wait for: the wallets by id (ids, and tids where their rows are), and what the
-- transfers do to them. Of each wallet, the least and the greatest change of its balance in the course of the transfers (lows, highs). Of
-- each leg, the payer's before the payee's: the position of its wallet in ids (slots), the change of its balance up to and with this leg
-- (sums), and how many legs it is of that wallet (numbers). lows is null: not all of them can be posted here.
-- The keys are looked up here, so that a repeat waits for no lock.
create or replace function wallet.transfers_plan (
  p_txn_ids uuid[], p_owners text[], p_amounts bigint[], p_others text[], p_asset text, p_requests jsonb[],
  out asset_id integer, out ids bigint[], out tids tid[], out lows bigint[], out highs bigint[],
  out slots integer[], out sums bigint[], out numbers bigint[])
  language plpgsql
as $$
#variable_conflict use_column
declare
  v_count integer := cardinality(p_txn_ids);
  v_asked record;
  v_names text[];
begin
  select bool_and(i.owner <> i.other and i.amount between 1 and 9007199254740991 and not starts_with(i.owner, '@')
                  and not starts_with(i.other, '@')) as good,
         count(*) filter (where i.owner <> i.other and i.amount > 0) as given, sum(i.amount) as sum
  into v_asked
  from (select p_owners[i] as owner, p_amounts[i] as amount, p_others[i] as other from generate_series(1, v_count) i offset 0) i;
  select array_agg(w.id), array_agg(w.owner), array_agg(w.tid), min(w.asset_id)
  into ids, v_names, tids, asset_id
  from (
    select w.id, w.owner, w.ctid as tid, w.asset_id
    from wallet.wallet w
    where w.owner = any (p_owners || p_others) and w.stripe = 0
      and w.asset_id = (select a.id from wallet.asset a where a.code = p_asset and a.emit_to is null)
      and v_asked.good and v_asked.given = v_count and v_asked.sum <= 1152921504606846976
      and (select count(distinct t) = v_count from unnest(p_txn_ids) t)
      and (p_requests is null
           or not exists (select from unnest(p_requests) r
                          where r is not null
                            and (jsonb_typeof(r) = 'object' and r - 'metadata' = '{}' and not wallet.is_too_large(r)) is not true))
      and not exists (select from wallet.txn t where t.txn_id = any (p_txn_ids))
    order by w.id) w;
  if ids is null then -- also of bad arguments, with which nothing must be computed
    return;
  end if;
  select array_agg(l.slot::integer), array_agg(l.sum), array_agg(l.number) into slots, sums, numbers
  from (
    select l.n, w.slot, wallet.sum_bigint(l.amount) over run as sum, row_number() over run as number
    from (select 2 * i - 1 as n, p_owners[i] as owner, -p_amounts[i] as amount from generate_series(1, v_count) i
          union all
          select 2 * i, p_others[i], p_amounts[i] from generate_series(1, v_count) i) l
    join unnest(ids, v_names) with ordinality w (id, owner, slot) on w.owner = l.owner
    window run as (partition by w.slot order by l.n rows unbounded preceding)
    order by l.n) l;
  if cardinality(slots) = 2 * v_count then
    select array_agg(w.low), array_agg(w.high) into lows, highs
    from (select min(l.sum) as low, max(l.sum) as high from unnest(slots, sums) l (slot, sum) group by l.slot order by l.slot) w;
  end if;
end
$$;

-- Locks the wallets and reads their last entries; p_lows and p_highs: see wallet.transfers_plan. at: the time for the transfers. trouble: see
-- wallet.legs_run. By tid, which no index has to be read for: rows of wallets never change, and the lock on the table that
-- wallet.transfers_plan took keeps them where they are.
create or replace function wallet.transfers_lock (
  p_ids bigint[], p_tids tid[], p_lows bigint[], p_highs bigint[],
  out balances bigint[], out versions bigint[], out helds bigint[], out floors bigint[], out at timestamptz, out trouble boolean)
  language plpgsql
as $$
declare
  v_txns bigint[];
begin
  perform from wallet.wallet w where w.ctid = any (p_tids) order by w.id for no key update;
  at := pawl.now(); -- under the locks
  select array_agg(e.balance), array_agg(e.version), array_agg(e.held), array_agg(e.floor), array_agg(e.txn),
         case when count(*) = cardinality(p_ids) then bool_or(e.trouble) end
  into balances, versions, helds, floors, v_txns, trouble
  from (
    select e.balance, e.version, e.held, e.floor, e.txn, wallet.is_trouble(e.balance + w.low, s.held, s.floor, s.frozen)
                                                         or wallet.is_trouble(e.balance + w.high, s.held, s.floor, s.frozen) as trouble
    from unnest(p_ids, p_lows, p_highs) with ordinality w (id, low, high, n)
    cross join lateral wallet.last_entry(w.id, null) e
    cross join lateral (select coalesce(e.held, 0), coalesce(e.floor, 0), coalesce(e.frozen, false)) s (held, floor, frozen)
    order by w.n) e;
  at := greatest(at, wallet.last_at(v_txns, at + wallet.clock_skew()));
end
$$;

-- Writes the transfers. p_wallets, p_balances, p_versions, p_helds, p_floors: of each wallet, before them; p_slots, p_sums, p_numbers: of each
-- leg, see wallet.transfers_plan. Returns the number before that of the first one; null: another transaction has used one of the keys
-- since, and nothing is written.
create or replace function wallet.transfers_write (
  p_at timestamptz, p_txn_ids uuid[], p_asset_id integer, p_amounts bigint[], p_requests jsonb[],
  p_wallets bigint[], p_balances bigint[], p_versions bigint[], p_helds bigint[], p_floors bigint[],
  p_slots integer[], p_sums bigint[], p_numbers bigint[])
  returns bigint
  language plpgsql
as $$
declare
  v_count integer := cardinality(p_txn_ids);
  v_base bigint := wallet.txn_base();
begin
  begin -- first the keys
    insert into wallet.txn (id, at, txn_id, kind, asset_id, wallet_id, other_id, amount, request)
    select v_base + i, p_at, p_txn_ids[i], 'transfer', p_asset_id, p_wallets[p_slots[2 * i - 1]], p_wallets[p_slots[2 * i]], p_amounts[i],
           nullif(p_requests[i], '{}')
    from generate_series(1, v_count) i
    order by p_txn_ids[i]; -- so that two callers with the same keys and other wallets cannot wait for each other
  exception when unique_violation then
    return null;
  end;
  insert into wallet.entry (wallet_id, version, txn, amount, balance, held, floor)
  select p_wallets[l.slot], p_versions[l.slot] + p_numbers[l.n], v_base + (l.n + 1) / 2,
         case when l.n % 2 = 1 then -p_amounts[(l.n + 1) / 2] else p_amounts[l.n / 2] end, p_balances[l.slot] + p_sums[l.n],
         p_helds[l.slot], p_floors[l.slot]
  from (select n, p_slots[n] as slot from generate_series(1, 2 * v_count) n offset 0) l;
  return v_base;
end
$$;

-- The columns of wallet.post, which calls it after wallet.is_transfers.
create or replace function wallet.post_transfers (
  p_txn_ids uuid[], p_owners text[], p_amounts bigint[], p_others text[], p_assets text[], p_requests jsonb[], p_atomic boolean)
  returns setof wallet.verdict
  language plpgsql set search_path = wallet, pawl, pg_temp
  set plan = transfers
as $$
declare
  v_count integer := cardinality(p_txn_ids);
  v_asset text := coalesce(p_assets[1], 'CREDIT');
  v_plan record := wallet.transfers_plan(p_txn_ids, p_owners, p_amounts, p_others, v_asset, p_requests);
  v_state record;
  -- Plain variables: PL/pgSQL expands these and parameters, not the fields of a record, into arrays whose elements are read in constant time.
  v_slots integer[] := v_plan.slots;
  v_sums bigint[] := v_plan.sums;
  v_numbers bigint[] := v_plan.numbers;
  v_balances bigint[];
  v_versions bigint[];
  v_helds bigint[];
  v_floors bigint[];
  v_base bigint;
begin
  if v_plan.lows is not null then
    v_state := wallet.transfers_lock(v_plan.ids, v_plan.tids, v_plan.lows, v_plan.highs);
    if not v_state.trouble then
      v_balances := v_state.balances;
      v_versions := v_state.versions;
      v_helds := v_state.helds;
      v_floors := v_state.floors;
      v_base := wallet.transfers_write(v_state.at, p_txn_ids, v_plan.asset_id, p_amounts, p_requests, v_plan.ids, v_balances, v_versions, v_helds,
                                       v_floors, v_slots, v_sums, v_numbers);
    end if;
  end if;
  if v_base is null then
    return query
      select p.* from wallet.post_arrays(array_fill('transfer'::text, array[v_count]), p_txn_ids, p_owners, p_amounts, p_others, p_assets, null,
                                         p_requests, p_atomic) p;
    return;
  end if;
  return query
    select i, p_txn_ids[i], true, null::text, null::text, null::text, 'transfer', p_owners[i], p_others[i], v_asset, p_amounts[i],
           p.balance + p_amounts[i], p.balance, p.held, p.balance - p.held - p.floor, p.version, p.balance, v_base + i, v_state.at
    from generate_series(1, v_count) i
    cross join lateral (select v_slots[2 * i - 1] as slot offset 0) s
    cross join lateral (
      select v_balances[s.slot] + v_sums[2 * i - 1] as balance, v_versions[s.slot] + v_numbers[2 * i - 1] as version,
             coalesce(v_helds[s.slot], 0) as held, coalesce(v_floors[s.slot], 0) as floor) p;
end
$$;
