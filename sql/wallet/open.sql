-- open.sql - creates assets and wallets.
--
-- Invariants: (owner, asset) is one wallet for ever; opening it again changes nothing and returns its present state.
-- An asset comes with its wallet "@system" in eight rows: a posting takes one that no other transaction has locked, and opens another one
-- when all are, so money that enters or leaves the ledger never waits for @system. Its balance is the sum of its stripes.
-- Errors: QW001 arrays of different length, a bad owner, asset or floor; 42501 see treasury.sql.

-- The asset's id; a new asset is created.
create or replace function wallet.asset_id (p_code text)
  returns integer
  language plpgsql security definer set search_path = wallet, pawl, pg_temp
as $$
declare
  v_id integer := (select a.id from wallet.asset a where a.code = p_code);
begin
  if v_id is not null then
    return v_id;
  end if;
  if p_code is null or p_code !~ '^[A-Z][A-Z0-9_.:-]{0,31}$' then
    raise exception 'asset must be 1 to 32 capital letters, digits, "_", ".", ":" or "-", beginning with a letter, got %',
      coalesce('"' || left(p_code, 40) || '"', 'NULL') using errcode = 'QW001';
  end if;
  insert into wallet.asset (code) values (p_code) on conflict do nothing returning id into v_id;
  if v_id is null then -- another transaction has committed it meanwhile
    return (select a.id from wallet.asset a where a.code = p_code);
  end if;
  perform wallet.open_rows(array_fill('@system'::text, array[8]), array_fill(v_id, array[8]),
                           array(select generate_series(0, 7)),
                           -- deep enough for five hundred times the largest amount, and far from the edge of bigint
                           array_fill(-(2::bigint ^ 62)::bigint, array[8]), null,
                           array(select pawl.uuid7() from generate_series(1, 8)));
  return v_id;
end
$$;

-- The rows of new wallets, for those that are not there yet. Returns the places (1, 2, ...) of those it made.
create or replace function wallet.open_rows (
  p_owners text[], p_assets integer[], p_stripes integer[], p_floors bigint[], p_metadata jsonb[], p_txn_ids uuid[])
  returns integer[]
  language plpgsql set search_path = wallet, pawl, pg_temp
as $$
#variable_conflict use_column
declare
  v_now timestamptz := pawl.now();
  v_made integer[];
begin
  perform wallet.txn_allocation_lock();
  with item as materialized (
    select u.ord::integer, u.owner, u.asset_id, coalesce(u.stripe, 0) as stripe, u.floor, u.metadata, u.txn_id
    from unnest(p_owners, p_assets, p_stripes, p_floors, p_metadata, p_txn_ids)
      with ordinality u (owner, asset_id, stripe, floor, metadata, txn_id, ord)
    order by u.owner, u.asset_id, u.ord -- so that two callers with the same wallets cannot wait for each other
  ), made as (
    insert into wallet.wallet (owner, asset_id, stripe, metadata, created_at)
    select i.owner, i.asset_id, i.stripe, i.metadata, v_now from item i
    on conflict on constraint wallet_owner_key do nothing
    returning id, owner, asset_id, stripe
  ), numbered as materialized (
    select distinct on (m.id) m.id, m.asset_id, i.ord, i.floor, i.metadata, i.txn_id, nextval('wallet.txn_seq') as txn
    from made m join item i on i.owner = m.owner and i.asset_id = m.asset_id and i.stripe = m.stripe
    order by m.id, i.ord
  ), logged as (
    insert into wallet.txn (id, at, txn_id, kind, asset_id, wallet_id, amount, request)
    select n.txn, v_now, n.txn_id, 'open', n.asset_id, n.id, 0,
           case when n.metadata is not null then jsonb_build_object('metadata', n.metadata) end
    from numbered n
    order by n.txn_id -- likewise
  ), entered as (
    insert into wallet.entry (wallet_id, version, txn, amount, balance, floor)
    select n.id, 0, n.txn, 0, 0, nullif(n.floor, 0) from numbered n
  )
  select array_agg(n.ord) into v_made from numbered n;
  return coalesce(v_made, '{}');
end
$$;

create or replace function wallet.open_check (p_owners text[], p_assets text[], p_floors bigint[], p_metadata jsonb[], p_txn_ids uuid[])
  returns void
  language plpgsql
as $$
declare
  v_count integer := cardinality(p_owners);
begin
  if (v_count between 1 and 100000) is not true then
    raise exception 'arrays must hold 1 to 100000 items and be of one length' using errcode = 'QW001';
  end if;
  perform pawl.array_check('owners', p_owners, v_count, 'QW001'), pawl.array_check('assets', p_assets, v_count, 'QW001', true),
          pawl.array_check('floors', p_floors, v_count, 'QW001', true), pawl.array_check('metadata', p_metadata, v_count, 'QW001', true),
          pawl.array_check('txn_ids', p_txn_ids, v_count, 'QW001', true);
  if exists (select from unnest(p_owners) o where o is null or octet_length(o) not between 1 and 255 or left(o, 1) = '@'
                                             or o ~ '[[:cntrl:]]') then
    raise exception 'owner must be 1 to 255 bytes without control characters and must not begin with "@"' using errcode = 'QW001';
  end if;
  if exists (select from unnest(p_floors) f where f not between -9007199254740991 and 0) then
    raise exception 'floor must be from -9007199254740991 to 0' using errcode = 'QW001';
  end if;
  if exists (select from unnest(p_metadata) m where wallet.is_too_large(m)) then
    raise exception 'metadata must have at most 262144 bytes as text' using errcode = 'QW001';
  end if;
  if exists (select from unnest(p_floors) f where f < 0) then
    perform wallet.treasury_check();
  end if;
end
$$;

-- A row per item, in order. floor: the present one. differs: the wallet was opened before with another floor or metadata than given
-- now; a floor or metadata that is not given (null) is not compared.
-- p_txn_ids: the caller's keys; without, the wallet itself is the key. p_lock_ms: as in wallet.post.
create or replace function wallet.open (
  p_owners text[], p_assets text[] default null, p_floors bigint[] default null, p_metadata jsonb[] default null,
  p_txn_ids uuid[] default null, p_lock_ms integer default null)
  returns table (ord integer, owner text, asset text, floor bigint, is_new boolean, differs text, at timestamptz)
  language plpgsql security definer set search_path = wallet, pawl, pg_temp
  set plan = ordered_cached
as $$
#variable_conflict use_column
declare
  v_count integer := cardinality(p_owners);
  v_codes text[];
  v_assets integer[];
  v_floors bigint[];
  v_keys uuid[];
  v_made integer[];
  v_new boolean[];
begin
  perform wallet.lock_limit(p_lock_ms), wallet.open_check(p_owners, p_assets, p_floors, p_metadata, p_txn_ids);
  -- Assets in the order of their codes, so that two callers with the same new ones cannot wait for each other.
  v_codes := array(select distinct coalesce(c, 'CREDIT') as c from unnest(coalesce(p_assets, array['CREDIT'])) c order by c);
  v_assets := array(select wallet.asset_id(c) from unnest(v_codes) with ordinality u (c, n) order by n);
  v_assets := array(select v_assets[array_position(v_codes, coalesce(u.asset, 'CREDIT'))]
                    from unnest(p_owners, p_assets) with ordinality u (owner, asset, n) order by n);
  v_floors := array(select coalesce(u.floor, 0) from unnest(p_owners, p_floors) with ordinality u (owner, floor, n) order by n);
  v_keys := array(select coalesce(u.txn_id, pawl.uuid7()) from unnest(p_owners, p_txn_ids) with ordinality u (owner, txn_id, n) order by n);
  -- The keys of wallets that already exist are left alone; one that was used for something else shows below.
  begin
    v_made := wallet.open_rows(p_owners, v_assets, null, v_floors, p_metadata, v_keys);
  exception when unique_violation then
    raise exception 'txn_id was used for another operation' using errcode = 'QW002';
  end;
  if cardinality(v_made) < v_count then
    perform pawl.replay_barrier();
  end if;
  v_new := array_fill(false, array[v_count]);
  for i in 1 .. cardinality(v_made) loop
    v_new[v_made[i]] := true;
  end loop;
  return query
    select u.n::integer, u.owner, coalesce(u.asset, 'CREDIT'), coalesce(s.floor, 0), u.is_new,
           case when coalesce(e.floor, 0) <> u.floor then 'floor' when w.metadata is distinct from coalesce(u.metadata, w.metadata) then 'metadata' end,
           w.created_at
    from unnest(p_owners, p_assets, v_assets, p_floors, p_metadata, v_new) with ordinality u (owner, asset, asset_id, floor, metadata, is_new, n)
    cross join lateral (select w.* from wallet.wallet w where w.owner = u.owner and w.asset_id = u.asset_id and w.stripe = 0 limit 1) w
    cross join lateral (select e.floor from wallet.entry e where e.wallet_id = w.id and e.version = 0 limit 1) e
    cross join lateral (select s.floor from wallet.entry s where s.wallet_id = w.id order by s.version desc limit 1) s
    order by u.n;
end
$$;
