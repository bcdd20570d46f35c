-- get.sql - reading wallets and entries. Each call reads one snapshot, locks nothing and sums no history.
-- Along the versions of a wallet transaction numbers increase, and so do their times (both are assigned under the wallet's lock),
-- unless the database's clock was set back by more than 5 s: then the order is that of the versions, and a time that occurred
-- twice is found at one of its two positions. So the version at a time is found by binary search: some twenty lookups in the
-- primary key for a million entries, and no additional index.

-- p_limit, or QW001: null, or not from 1 to 100000.
create or replace function wallet.limit_check (p_limit integer)
  returns integer
  language plpgsql immutable
as $$
begin
  if (p_limit between 1 and 100000) is not true then
    raise exception 'limit must be from 1 to 100000, got %', coalesce(p_limit::text, 'null') using errcode = 'QW001';
  end if;
  return p_limit;
end
$$;

-- The last version of a wallet whose transaction is not after this number or moment (whichever is given); null: none.
create or replace function wallet.version_at (p_wallet bigint, p_number bigint, p_at timestamptz default null)
  returns bigint
  language plpgsql stable set search_path = wallet, pg_temp
as $$
declare
  v_low bigint := -1; -- not after
  v_high bigint := (select e.version + 1 from wallet.entry e where e.wallet_id = p_wallet order by e.version desc limit 1); -- after
  v_middle bigint;
begin
  while v_high - v_low > 1 loop
    v_middle := (v_low + v_high) / 2;
    if (select t.id <= coalesce(p_number, t.id) and t.at <= coalesce(p_at, t.at)
        from wallet.entry e join wallet.txn t on t.id = e.txn
        where e.wallet_id = p_wallet and e.version = v_middle) then
      v_low := v_middle;
    else
      v_high := v_middle;
    end if;
  end loop;
  return nullif(v_low, -1);
end
$$;

-- How many seconds the newest transactions are ahead of the database's clock; 0: none is. More than a few mean that the clock was
-- wrong, and was set back since: postings go by the clock again, and this goes to 0 when a thousand have been made.
create or replace function wallet.clock_ahead ()
  returns bigint
  language sql volatile security definer set search_path = wallet, pawl, pg_temp
as $$
  select greatest(0, ceil(extract(epoch from max(t.at) - pawl.now())))::bigint
  from (select t.at from wallet.txn t order by t.id desc limit 1000) t
$$;

-- The present state of wallets; a row for each that exists. @system is one wallet here. PL/pgSQL, because it caches plans.
create or replace function wallet.get (p_owners text[], p_assets text[] default null)
  returns table (ord integer, owner text, asset text, balance bigint, held bigint, available bigint, floor bigint, version bigint,
                 frozen boolean, metadata jsonb, created_at timestamptz)
  language plpgsql stable security definer set search_path = wallet, pg_temp
  set plan = posting
as $$
#variable_conflict use_column
begin
  perform pawl.array_check('owners', p_owners, cardinality(p_owners), 'QW001'), pawl.array_check('assets', p_assets, cardinality(p_owners), 'QW001', true);
  return query
    select u.ord::integer, w.owner, a.code, s.balance, s.held, s.balance - s.held - s.floor, s.floor, s.version, s.frozen,
           case when pg_column_size(w.metadata) >= 300 then pawl.json_shown(w.metadata) else w.metadata end,
           w.created_at
    from unnest(p_owners, p_assets) with ordinality u (owner, asset, ord)
    cross join lateral (select a.id, a.code from wallet.asset a where a.code = coalesce(u.asset, 'CREDIT') limit 1) a
    cross join lateral (select w.* from wallet.wallet w where w.owner = u.owner and w.asset_id = a.id and w.stripe = 0 limit 1) w
    cross join lateral (
      select e.balance, coalesce(e.held, 0) as held, coalesce(e.floor, 0) as floor, e.version, coalesce(e.frozen, false) as frozen
      from wallet.entry e where e.wallet_id = w.id order by e.version desc limit 1) s
    where u.owner <> '@system';
  if '@system' = any (p_owners) then
    return query
      select u.ord::integer, '@system', a.code, sum(s.balance)::bigint, 0::bigint, sum(s.balance)::bigint,
             null::bigint, sum(s.version)::bigint, false, null::jsonb, min(w.created_at)
      from unnest(p_owners, p_assets) with ordinality u (owner, asset, ord)
      join wallet.asset a on a.code = coalesce(u.asset, 'CREDIT')
      join wallet.wallet w on w.owner = '@system' and w.asset_id = a.id
      cross join lateral (select e.balance, e.version from wallet.entry e where e.wallet_id = w.id order by e.version desc limit 1) s
      where u.owner = '@system'
      group by u.ord, a.code;
  end if;
end
$$;

-- All wallets of an owner, by asset.
create or replace function wallet.assets_of (p_owner text)
  returns table (asset text)
  language sql stable security definer set search_path = wallet, pg_temp
as $$
  select a.code from wallet.wallet w join wallet.asset a on a.id = w.asset_id
  where w.owner = p_owner and w.stripe = 0
  order by a.code
$$;

-- A wallet's state at a time: after the last entry that is not later. No row: it did not exist.
create or replace function wallet.balance_at (p_owner text, p_at timestamptz, p_asset text default 'CREDIT')
  returns table (balance bigint, held bigint, floor bigint, version bigint)
  language sql stable security definer set search_path = wallet, pg_temp
as $$
  select sum(e.balance)::bigint, sum(coalesce(e.held, 0))::bigint, case when p_owner <> '@system' then sum(coalesce(e.floor, 0)) end::bigint,
         sum(e.version)::bigint
  from wallet.asset a
  join wallet.wallet w on w.owner = p_owner and w.asset_id = a.id
  join wallet.entry e on e.wallet_id = w.id and e.version = wallet.version_at(w.id, null, p_at)
  where a.code = p_asset
  having count(*) > 0
$$;

-- The entries of a wallet, newest first, before a transaction's number (null: from the newest). The opening is not an entry to
-- show. p_kind, p_since, p_until: only these. Errors: QW001 a limit out of range.
create or replace function wallet.entries (
  p_owner text, p_asset text default 'CREDIT', p_limit integer default 100, p_before bigint default null, p_kind text default null,
  p_since timestamptz default null, p_until timestamptz default null)
  returns table (number bigint, version bigint, txn_id uuid, kind text, amount bigint, balance bigint, held bigint, other text, metadata jsonb,
                 at timestamptz)
  language sql stable security definer set search_path = wallet, pg_temp
  set plan = index
as $$
  select e.*
  from wallet.asset a
  join wallet.wallet w on w.owner = p_owner and w.asset_id = a.id
  cross join lateral (
    select t.id, e.version, t.txn_id, t.kind, e.amount, e.balance, coalesce(e.held, 0),
           wallet.owner_of(case when t.wallet_id = e.wallet_id then t.other_id else t.wallet_id end),
           case when pg_column_size(t.request) >= 300 then pawl.json_shown(t.request -> 'metadata') else t.request -> 'metadata' end, t.at
    from wallet.entry e join wallet.txn t on t.id = e.txn
    where e.wallet_id = w.id and e.version > coalesce(case when p_since is not null then wallet.version_at(w.id, null, p_since - interval '1 us') end, 0)
      and e.version > 0 and e.version <= coalesce(wallet.version_at(w.id, case when p_before is not null then greatest(p_before, 0) - 1 end, p_until), -1)
      and t.kind = coalesce(p_kind, t.kind)
    order by e.version desc
    limit p_limit) e (number, version, txn_id, kind, amount, balance, held, other, metadata, at)
  where a.code = p_asset
  order by e.number desc
  limit wallet.limit_check(p_limit)
$$;

-- One transaction: what was asked, what was decided, what it changed. Null: there is none under this key.
create or replace function wallet.transaction (p_txn_id uuid)
  returns jsonb
  language sql stable security definer set search_path = wallet, pawl, pg_temp
as $$
  select jsonb_strip_nulls(jsonb_build_object('txn_id', t.txn_id, 'kind', t.kind, 'asset', wallet.asset_code(t.asset_id),
           'amount', t.amount, 'owner', wallet.owner_of(t.wallet_id), 'other', wallet.owner_of(t.other_id),
           'ref', (select r.txn_id from wallet.txn r where r.id = t.ref), 'metadata', pawl.json_shown(t.request -> 'metadata'),
           'status', case when t.refusal is null then 'posted' else 'refused' end, 'refusal', t.refusal, 'reason', t.sentence,
           'at', pawl.iso(t.at),
           'refunded', nullif((select sum(r.amount) from wallet.txn r where r.ref = t.id and r.kind = 'refund' and r.refusal is null), 0),
           'hold', (select jsonb_strip_nulls(jsonb_build_object('amount', h.amount, 'captured', h.captured, 'status', h.status, 'expires_at', pawl.iso(h.expires_at)))
                    from wallet.holds h where h.id = t.id)))
         || jsonb_build_object('entries', coalesce((
              select jsonb_agg(jsonb_build_object('owner', w.owner, 'asset', wallet.asset_code(w.asset_id), 'amount', e.amount,
                       'balance', e.balance, 'held', coalesce(e.held, 0), 'version', e.version) order by w.owner, w.asset_id)
              from wallet.entry e join wallet.wallet w on w.id = e.wallet_id where e.txn = t.id), '[]'))
  from wallet.txn t
  where t.txn_id = p_txn_id
$$;
