-- list.sql - lists of wallets, holds and transactions, newest first.
--
-- Each reads its table by the primary key, below p_before, at most p_rows rows: there is no index by asset, status or the beginning of an owner, because
-- every posting would pay for it. When p_rows ends a page, its last row has no id, and searched_to says where the next page begins. Other rows have their
-- own id there. p_owner: an owner, or the beginning of one and a "*". p_owners: the same, one of which must match too: what the caller may see.
-- Errors: QW001 a limit out of range.

-- The wallets of an owner, one for each asset. Null: p_owner is null, or means all that begin so.
create or replace function wallet.owned (p_owner text)
  returns bigint[]
  language plpgsql stable set search_path = wallet, pg_temp
  set plan = keyed_cached
as $$
begin
  if p_owner is null or p_owner like '%*' then
    return null;
  end if;
  return array(select w.id from wallet.wallet w where w.owner = p_owner and w.stripe = 0);
end
$$;

create or replace function wallet.wallet_page (
  p_owner text default null, p_asset text default null, p_since timestamptz default null, p_until timestamptz default null,
  p_before bigint default null, p_limit integer default 100, p_rows integer default 20000, p_owners text[] default null)
  returns table (id bigint, owner text, asset text, balance bigint, held bigint, available bigint, floor bigint, version bigint,
                 frozen boolean, created_at timestamptz, searched_to bigint)
  language plpgsql stable security definer set search_path = wallet, pg_temp
  set plan = keyed_cached
as $$
#variable_conflict use_column
declare
  v_like text[] := pawl.names_like(p_owners);
  v_owner text := (pawl.names_like(array[p_owner]))[1];
  v_asset integer := (select a.id from wallet.asset a where a.code = p_asset);
  v_owned bigint[] := wallet.owned(p_owner);
  v_range record;
  v_ids bigint[];
  v_last bigint;
begin
  perform pawl.list_check(p_limit, p_rows, 'QW001');
  if p_asset is not null and v_asset is null then
    return;
  end if;
  select r.before, r.after into v_range from pawl.id_range('wallet.wallet', 'created_at', p_since, p_until, p_before) r;
  select array_agg(m.id) filter (where m.hit), max(m.id) filter (where m.n = p_rows) into v_ids, v_last
  from (
    select x.id, h.hit, x.n
    from (
      select s.*, row_number() over () as n
      from ((select w.* from wallet.wallet w where v_owned is null and w.id < v_range.before and w.id > v_range.after order by w.id desc)
            union all
            (select w.* from wallet.wallet w where w.id = any (v_owned) and w.id < v_range.before and w.id > v_range.after order by w.id desc)) s
      limit p_rows) x
    cross join lateral (
      select x.stripe = 0 and (v_asset is null or x.asset_id = v_asset)
             and (v_owner is null or x.owner like v_owner) and (v_like is null or x.owner like any (v_like))
             and (p_since is null or x.created_at >= p_since) and (p_until is null or x.created_at <= p_until) as hit) h
    where h.hit or x.n = p_rows
    limit p_limit) m;
  return query
    select w.id, w.owner, a.code, s.balance, s.held, s.balance - s.held - s.floor, case when w.owner <> '@system' then s.floor end, s.version,
           s.frozen, w.created_at, w.id
    from wallet.wallet w
    cross join lateral (select a.code from wallet.asset a where a.id = w.asset_id limit 1) a
    cross join lateral (
      select e.balance, coalesce(e.held, 0) as held, coalesce(e.floor, 0) as floor, e.version, coalesce(e.frozen, false) as frozen
      from (select e.* from wallet.entry e where e.wallet_id = w.id and w.owner <> '@system' order by e.version desc limit 1) e
      union all
      select t.balance, 0, 0, t.version, false from wallet.get(array[w.owner], array[a.code]) t where w.owner = '@system') s
    where w.id = any (v_ids)
    order by w.id desc;
  if v_last is not null and (coalesce(cardinality(v_ids), 0) < p_limit) then
    searched_to := v_last;
    return next;
  end if;
end
$$;

-- p_status: OPEN, CAPTURED, VOIDED or EXPIRED. p_since, p_until: when they were placed.
create or replace function wallet.hold_page (
  p_owner text default null, p_asset text default null, p_status text default null, p_since timestamptz default null,
  p_until timestamptz default null, p_before bigint default null, p_limit integer default 100, p_rows integer default 20000,
  p_owners text[] default null)
  returns table (id bigint, txn_id uuid, owner text, asset text, amount bigint, captured bigint, remaining bigint, status text,
                 expires_at timestamptz, at timestamptz, searched_to bigint)
  language plpgsql stable security definer set search_path = wallet, pg_temp
  set plan = keyed_cached
as $$
#variable_conflict use_column
declare
  v_like text[] := pawl.names_like(p_owners);
  v_owner text := (pawl.names_like(array[p_owner]))[1];
  v_asset integer := (select a.id from wallet.asset a where a.code = p_asset);
  v_owned bigint[] := wallet.owned(p_owner);
  v_rows integer := case when p_owners is not null or p_owner like '%*' then least(p_rows, 7000) else p_rows end; -- each needs lookups of owners
  v_range record;
  v_ids bigint[];
  v_last bigint;
begin
  perform pawl.list_check(p_limit, p_rows, 'QW001');
  if p_asset is not null and v_asset is null then
    return;
  end if;
  select r.before, r.after into v_range from pawl.id_range('wallet.txn', 'at', p_since, p_until, p_before) r;
  select array_agg(m.id) filter (where m.hit), max(m.id) filter (where m.n = v_rows) into v_ids, v_last
  from (
    select x.id, h.hit, x.n
    from (
      select s.*, row_number() over () as n
      from (select h.* from wallet.hold h where h.id < v_range.before and h.id > v_range.after order by h.id desc) s
      limit v_rows) x
    cross join lateral (
      -- In this order: what needs no other table first.
      select case
        when p_status <> x.status or x.wallet_id <> all (v_owned) then false
        else (v_asset is null and v_like is null and (v_owner is null or v_owned is not null) or (
               select (v_asset is null or w.asset_id = v_asset) and (v_owner is null or w.owner like v_owner)
                      and (v_like is null or w.owner like any (v_like))
               from wallet.wallet w where w.id = x.wallet_id))
             and (p_since is null and p_until is null or (
               select t.at >= coalesce(p_since, t.at) and t.at <= coalesce(p_until, t.at) from wallet.txn t where t.id = x.id))
        end as hit) h
    where h.hit or x.n = v_rows
    limit p_limit) m;
  return query
    select h.id, t.txn_id, w.owner, a.code, h.amount, h.captured, case when h.status = 'OPEN' then h.amount - h.captured else 0 end, h.status,
           h.expires_at, t.at, h.id
    from wallet.holds h
    cross join lateral (select t.txn_id, t.at from wallet.txn t where t.id = h.id limit 1) t
    cross join lateral (select w.owner, w.asset_id from wallet.wallet w where w.id = h.wallet_id limit 1) w
    cross join lateral (select a.code from wallet.asset a where a.id = w.asset_id limit 1) a
    where h.id = any (v_ids)
    order by h.id desc;
  if v_last is not null and (coalesce(cardinality(v_ids), 0) < p_limit) then
    searched_to := v_last;
    return next;
  end if;
end
$$;

-- Operations that were decided. p_owner: on either side. p_status: posted or refused.
create or replace function wallet.transaction_page (
  p_owner text default null, p_asset text default null, p_kind text default null, p_status text default null,
  p_since timestamptz default null, p_until timestamptz default null, p_before bigint default null, p_limit integer default 100,
  p_rows integer default 20000, p_owners text[] default null)
  returns table (id bigint, txn_id uuid, kind text, status text, owner text, other text, asset text, amount bigint, ref uuid,
                 refusal text, reason text, at timestamptz, searched_to bigint)
  language plpgsql stable security definer set search_path = wallet, pg_temp
  set plan = keyed_cached
as $$
#variable_conflict use_column
declare
  v_like text[] := pawl.names_like(p_owners);
  v_owner text := (pawl.names_like(array[p_owner]))[1];
  v_asset integer := (select a.id from wallet.asset a where a.code = p_asset);
  v_owned bigint[] := wallet.owned(p_owner);
  v_rows integer := case when p_owners is not null or p_owner like '%*' then least(p_rows, 7000) else p_rows end; -- each needs lookups of owners
  v_range record;
  v_ids bigint[];
  v_last bigint;
begin
  perform pawl.list_check(p_limit, p_rows, 'QW001');
  if p_asset is not null and v_asset is null then
    return;
  end if;
  select r.before, r.after into v_range from pawl.id_range('wallet.txn', 'at', p_since, p_until, p_before) r;
  select array_agg(m.id) filter (where m.hit), max(m.id) filter (where m.n = v_rows) into v_ids, v_last
  from (
    select x.id, h.hit, x.n
    from (
      select s.*, row_number() over () as n
      from (select t.id, t.kind, t.asset_id, t.wallet_id, t.other_id, t.refusal, t.at
            from wallet.txn t where t.id < v_range.before and t.id > v_range.after order by t.id desc) s
      limit v_rows) x
    cross join lateral (
      select case
        when p_kind <> x.kind or v_asset <> x.asset_id or (p_status = 'posted') <> (x.refusal is null) or x.at < p_since or x.at > p_until then false
        when v_owned is not null and not (x.wallet_id = any (v_owned) or x.other_id is not null and x.other_id = any (v_owned)) then false
        else (v_owned is not null or v_owner is null
              or coalesce((select w.owner like v_owner from wallet.wallet w where w.id = x.wallet_id)
                          or (select w.owner like v_owner from wallet.wallet w where w.id = x.other_id), false))
             and (v_like is null
                  or coalesce((select w.owner like any (v_like) from wallet.wallet w where w.id = x.wallet_id)
                              or (select w.owner like any (v_like) from wallet.wallet w where w.id = x.other_id), false)) end as hit) h
    where h.hit or x.n = v_rows
    limit p_limit) m;
  return query
    select t.id, t.txn_id, t.kind, case when t.refusal is null then 'posted' else 'refused' end, wallet.owner_of(t.wallet_id),
           wallet.owner_of(t.other_id), wallet.asset_code(t.asset_id), t.amount, r.txn_id, t.refusal, t.sentence, t.at, t.id
    from wallet.txn t
    left join lateral (select r.txn_id from wallet.txn r where r.id = t.ref limit 1) r on true
    where t.id = any (v_ids)
    order by t.id desc;
  if v_last is not null and (coalesce(cardinality(v_ids), 0) < p_limit) then
    searched_to := v_last;
    return next;
  end if;
end
$$;
