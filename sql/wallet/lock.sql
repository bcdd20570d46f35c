-- lock.sql - the locks of a posting.
--
-- The wallet's own row is locked. It never changes, so a lock overwrites the one before it in place and leaves no
-- row version behind, however long another transaction stays open. `for no key update`, so that an application's foreign key to
-- a wallet is checked without waiting; no function takes another lock on it.
-- Lock order: wallets by id, waited for; then a stripe of @system per asset, never waited for; then unique keys of wallet.txn, in
-- their order.
-- The last entry is read by a statement after the one that locks: under READ COMMITTED it sees what the earlier holder of the lock
-- wrote; under stricter levels the key (wallet_id, version) of wallet.entry refuses a second entry of the same version.

-- An entry may be this much later than the clock, so that the times of a wallet's entries grow although a clock was set back a little.
-- Beyond it the clock was wrong before, and its present time is used; the order is that of the versions.
create or replace function wallet.clock_skew ()
  returns interval
  language sql immutable
as $$ select interval '5 s' $$;

-- How long the rest of the transaction waits for each lock; null: as before. Raises unless it is a time.
create or replace function wallet.lock_limit (p_lock_ms integer)
  returns void
  language plpgsql
as $$
declare
  v_limit text;
begin
  if p_lock_ms < 0 then
    raise exception 'lock_ms must be from 0 to 2147483647, got %', p_lock_ms using errcode = 'QW001';
  elsif p_lock_ms is not null then
    v_limit := set_config('lock_timeout', p_lock_ms::text, true); -- an assignment starts no plan
  end if;
end
$$;

-- The last entry of a wallet, with the time of its transaction, unless that is after p_until. One statement, so that it is inlined.
create or replace function wallet.last_entry (p_wallet bigint, p_until timestamptz)
  returns table (wallet_id bigint, version bigint, txn bigint, balance bigint, held bigint, floor bigint, frozen boolean, at timestamptz)
  language sql stable
as $$
  select e.wallet_id, e.version, e.txn, e.balance, e.held, e.floor, e.frozen,
         (select t.at from wallet.txn t where t.id = e.txn and t.at <= p_until)
  from wallet.entry e where e.wallet_id = p_wallet order by e.version desc limit 1
$$;

-- The latest time of these transactions, of those that are not after p_until. Those of one call have one time, and numbers from one value of
-- wallet.txn_seq on, of which each call has its own: so one of each call is read.
create or replace function wallet.last_at (p_txns bigint[], p_until timestamptz)
  returns timestamptz
  language plpgsql
as $$
begin
  return (
    select max(t.at)
    from (select max(x) as txn from unnest(p_txns) x group by x / 10000) c
    cross join lateral (select t.at from wallet.txn t where t.id = c.txn and t.at <= p_until limit 1) t);
end
$$;

-- Takes the allocation lock, as wallet.txn_allocation_lock() does, without the plans that calling it would start. Returns the number before that of the
-- first transaction of a call: positions begin with 1.
create or replace function wallet.txn_base ()
  returns bigint
  language plpgsql
as $$
declare
  v_xid xid8 := pg_current_xact_id(); -- before the lock: a holder without an id would not be seen
begin
  lock table wallet.txn_allocation in row share mode;
  return nextval('wallet.txn_seq') - 1;
end
$$;

-- Locks a stripe of @system that no other transaction has locked, and opens a new one if there is none. Stripes with a balance beyond
-- 2^61 are passed over, so that no sum leaves the range of bigint.
create or replace function wallet.stripe_lock (p_asset integer)
  returns bigint
  language plpgsql
as $$
declare
  v_id bigint;
  v_stripe integer;
begin
  -- Sessions start at different stripes.
  foreach v_stripe in array array[pg_backend_pid() % 8, 0] loop
    select w.id into v_id from wallet.wallet w
    where w.owner = '@system' and w.asset_id = p_asset and w.stripe >= v_stripe
      and (select e.balance between -2305843009213693952 and 2305843009213693952 from wallet.entry e where e.wallet_id = w.id order by e.version desc limit 1)
    order by w.stripe
    limit 1
    for no key update skip locked;
    if found then
      return v_id;
    end if;
  end loop;
  v_stripe := nextval('wallet.stripe_seq');
  perform wallet.open_rows(array['@system'], array[p_asset], array[v_stripe], array[-4611686018427387904], null, array[pawl.uuid7()]);
  return (select w.id from wallet.wallet w where w.owner = '@system' and w.asset_id = p_asset and w.stripe = v_stripe);
end
$$;

-- Locks wallets by id, then a stripe for each @system among them. A wallet may be named twice.
-- p_skip_locked: wallets that another transaction has locked are returned in busy and not locked.
create or replace function wallet.post_lock (p_kinds text[], p_assets integer[], p_wallets bigint[], p_skip_locked boolean,
                                             out systems bigint[], out stripes bigint[], out busy bigint[])
  language plpgsql
as $$
declare
  v_system bigint;
begin
  systems := '{}';
  stripes := '{}';
  if p_kinds && array['multi', 'refund'] then -- any assets
    systems := array(select distinct w.id from unnest(p_wallets) p (id)
                     cross join lateral (select w.id from wallet.wallet w where w.id = p.id and w.owner = '@system' limit 1) w order by 1);
  elsif p_kinds && array['topup', 'spend', 'capture'] then
    systems := array(select w.id from (select distinct a from unnest(p_assets) a) a (id)
                     cross join lateral (select w.id from wallet.wallet w where w.owner = '@system' and w.asset_id = a.id and w.stripe = 0 limit 1) w
                     where w.id = any (p_wallets) order by 1);
  end if;
  if p_skip_locked then
    busy := array(select w.id from wallet.wallet w where w.id = any (p_wallets) and w.id <> all (systems) order by w.id for no key update skip locked);
    if cardinality(busy) < (select count(distinct w) from unnest(p_wallets) w) - cardinality(systems) then
      busy := array(select w from unnest(p_wallets) w except (select w from unnest(busy) w union all select w from unnest(systems) w));
    else
      busy := '{}';
    end if;
  else
    perform from wallet.wallet w where w.id = any (p_wallets) and w.id <> all (systems) order by w.id for no key update;
  end if;
  foreach v_system in array systems loop
    stripes := stripes || wallet.stripe_lock((select w.asset_id from wallet.wallet w where w.id = v_system));
  end loop;
end
$$;

-- A call of several chunks would lock wallets chunk by chunk, and two such calls could deadlock: it locks all wallets that it names
-- before the first chunk.
create or replace function wallet.post_lock_all (p_owners text[], p_others text[], p_refs uuid[], p_requests jsonb[])
  returns void
  language plpgsql
as $$
begin
  perform from wallet.wallet w
  where w.id = any (array(
    select w.id
    from (select o from unnest(p_owners) o union select o from unnest(p_others) o
          union select l ->> 'owner' from unnest(p_requests) r, jsonb_array_elements(r -> 'legs') l) o (owner)
    cross join lateral (select w.id from wallet.wallet w where w.owner = o.owner offset 0) w
    where o.owner <> '@system'
    union
    select e.wallet_id
    from unnest(p_refs) r (txn_id)
    cross join lateral (select t.id from wallet.txn t where t.txn_id = r.txn_id limit 1) t
    cross join lateral (select e.wallet_id from wallet.entry e where e.txn = t.id offset 0) e
    where wallet.owner_of(e.wallet_id) <> '@system'))
  order by w.id
  for no key update;
end
$$;

-- Legs on @system go to the stripes that were locked for it.
create or replace function wallet.legs_striped (p_legs wallet.legs, p_systems bigint[], p_stripes bigint[])
  returns wallet.legs
  language plpgsql immutable
as $$
begin
  if cardinality(p_systems) > 0 then
    p_legs.wallets := array(select coalesce(p_stripes[array_position(p_systems, l.wallet)], l.wallet)
                            from unnest(p_legs.wallets) with ordinality l (wallet, n) order by n);
  end if;
  return p_legs;
end
$$;
