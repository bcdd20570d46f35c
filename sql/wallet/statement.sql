-- statement.sql - the entries of a wallet, oldest first; get.sql has them newest first.

-- From a moment to a moment, after a transaction's number (null: from the oldest). The opening is not an entry to show.
-- Balance and version run along from where the statement begins, so those of @system are of all its stripes together; of any
-- other wallet they are the entry's own. Errors: QW001 a limit out of range.
create or replace function wallet.statement (
  p_owner text, p_asset text default 'CREDIT', p_since timestamptz default null, p_until timestamptz default null,
  p_after bigint default null, p_limit integer default 1000)
  returns table (number bigint, version bigint, txn_id uuid, kind text, amount bigint, balance bigint, held bigint, other text,
                 metadata jsonb, at timestamptz)
  language sql stable security definer set search_path = wallet, pg_temp
  set plan = index
as $$
  with stripe as materialized (
    select w.id, greatest(0, case when p_since is not null then wallet.version_at(w.id, null, p_since - interval '1 us') end,
                          case when p_after is not null then wallet.version_at(w.id, p_after) end) as low,
           coalesce(wallet.version_at(w.id, null, p_until), -1) as high
    from wallet.asset a join wallet.wallet w on w.owner = p_owner and w.asset_id = a.id
    where a.code = p_asset
  ), start as (
    select sum(e.balance)::bigint as balance, sum(e.version)::bigint as version
    from stripe s join wallet.entry e on e.wallet_id = s.id and e.version = s.low
  )
  select e.number, b.version + row_number() over run, e.txn_id, e.kind, e.amount, b.balance + (sum(e.amount) over run)::bigint, e.held,
         e.other, e.metadata, e.at
  from start b
  cross join stripe s
  cross join lateral (
    select t.id, t.txn_id, t.kind, e.amount, coalesce(e.held, 0),
           wallet.owner_of(case when t.wallet_id = e.wallet_id then t.other_id else t.wallet_id end),
           case when pg_column_size(t.request) >= 300 then pawl.json_shown(t.request -> 'metadata') else t.request -> 'metadata' end, t.at
    from wallet.entry e join wallet.txn t on t.id = e.txn
    where e.wallet_id = s.id and e.version > s.low and e.version <= s.high
    order by e.version
    limit p_limit) e (number, txn_id, kind, amount, held, other, metadata, at)
  window run as (order by e.number rows unbounded preceding)
  order by e.number
  limit wallet.limit_check(p_limit)
$$;
