-- post_batch.sql - the core of wallet.post: operations of which none needs to see what another one wrote.
-- Called by wallet.post, after its checks. Everything here runs with the rights of wallet.post.

-- Legs in the one form in which they are kept and compared: HTTP names the asset of each, a caller in SQL may leave it out.
create or replace function wallet.legs_named_all (p_request jsonb)
  returns jsonb
  language sql immutable
as $$
  select jsonb_set(p_request, '{legs}', (select jsonb_agg('{"asset": "CREDIT"}' || l.leg order by l.n)
                                         from jsonb_array_elements(p_request -> 'legs') with ordinality l (leg, n)))
$$;

-- The request as it is kept: the keys that have no column, and whether the amount was left out.
create or replace function wallet.request_of (p_kind text, p_amount bigint, p_request jsonb)
  returns jsonb
  language sql immutable
as $$
  select case when p_kind = 'multi' then wallet.legs_named_all(p_request)
              when p_amount is null and p_kind in ('capture', 'refund') then coalesce(p_request, '{}') || '{"whole": true}'
              else nullif(p_request, '{}') end
$$;

-- The operations of a batch that were not refused.
create or replace function wallet.batch_filter (p_batch wallet.batch, p_refusals text[])
  returns wallet.batch
  language plpgsql immutable
as $$
begin
  return (select row(array_agg(i.ord order by n), array_agg(i.kind order by n), array_agg(i.txn_id order by n), array_agg(i.asset order by n),
             array_agg(i.main order by n), array_agg(i.other order by n), array_agg(i.amount order by n), array_agg(i.ref order by n),
             array_agg(i.request order by n))::wallet.batch
  from unnest(p_batch.ords, p_batch.kinds, p_batch.txn_ids, p_batch.assets, p_batch.mains, p_batch.others, p_batch.amounts,
              p_batch.refs, p_batch.requests, p_refusals)
    with ordinality i (ord, kind, txn_id, asset, main, other, amount, ref, request, refusal, n)
  where i.refusal is null);
end
$$;

-- The field in which an operation differs from the one its key was used for; null: in none.
create or replace function wallet.difference (
  p_txn wallet.txn, p_kind text, p_asset integer, p_main bigint, p_other bigint, p_amount bigint, p_ref bigint, p_request jsonb)
  returns text
  language sql immutable
as $$
  select case
    when p_txn.kind <> p_kind then 'kind'
    when p_txn.ref is distinct from p_ref then 'ref'
    when p_txn.asset_id is distinct from p_asset and p_kind <> 'multi' then 'asset' -- of many legs, their assets are compared
    when p_txn.wallet_id is distinct from p_main then 'owner'
    when p_txn.other_id is distinct from p_other then 'other'
    when p_kind = 'multi' and p_txn.request -> 'legs' <> p_request -> 'legs' then 'legs'
    when p_txn.request is not distinct from p_request and p_txn.amount = coalesce(p_amount, p_txn.amount) then null
    when p_txn.amount <> p_amount or coalesce(p_txn.request ? 'whole', false) <> coalesce(p_request ? 'whole', false) then 'amount'
    else (select k from unnest(array['floor', 'expires_in_s', 'metadata']) with ordinality f (k, n)
          where p_txn.request -> k is distinct from p_request -> k order by n limit 1)
  end
$$;

-- The first verdicts of keys that have been decided, by this call or an earlier one.
create or replace function wallet.post_replay (p_batch wallet.batch, p_refusals text[], p_asked bigint[])
  returns setof wallet.verdict
  language plpgsql stable
as $$
begin
  return query
  select i.ord, t.txn_id, i.refusal <> 'known', t.refusal, t.sentence,
         wallet.difference(t.row, i.kind, i.asset, i.main, i.other, i.asked, i.ref, i.request),
         t.kind, w.owner, o.owner, a.code, t.amount, e.balance - e.amount, e.balance, coalesce(e.held, 0),
         e.balance - coalesce(e.held, 0) - coalesce(e.floor, 0), e.version, s.balance, t.id, t.at
  from unnest(p_batch.ords, p_batch.kinds, p_batch.txn_ids, p_batch.assets, p_batch.mains, p_batch.others, p_batch.refs,
              p_batch.requests, p_asked, p_refusals) i (ord, kind, txn_id, asset, main, other, ref, request, asked, refusal)
  cross join lateral (select t as row, t.* from wallet.txn t where t.txn_id = i.txn_id limit 1) t
  cross join lateral (select a.code from wallet.asset a where a.id = t.asset_id limit 1) a
  cross join lateral (select w.owner from wallet.wallet w where w.id = t.wallet_id limit 1) w
  cross join lateral (select s.balance from wallet.entry s where s.wallet_id = t.wallet_id order by s.version desc limit 1) s
  left join lateral (select o.owner from wallet.wallet o where o.id = t.other_id limit 1) o on true
  left join lateral (select e.* from wallet.entry e where e.txn = t.id and e.wallet_id = t.wallet_id limit 1) e on true
  where i.refusal = 'known' or wallet.is_kept(i.kind, i.refusal); -- a key that is busy may have been decided just now
end
$$;

create or replace function wallet.asset_code (p_asset integer)
  returns text
  language sql stable
as $$ select a.code from wallet.asset a where a.id = p_asset $$;

-- Sends commands "wallet.posted" in the same transaction: one per transaction and asset that has events.
create or replace function wallet.emit (p_batch wallet.batch, p_legs wallet.legs, p_now timestamptz)
  returns void
  language plpgsql
as $$
declare
  -- Plain variables: PL/pgSQL expands only these into arrays whose elements are read in constant time.
  v_txn_ids uuid[] := p_batch.txn_ids;
  v_kinds text[] := p_batch.kinds;
  v_assets integer[] := p_batch.assets;
  v_mains bigint[] := p_batch.mains;
  v_others bigint[] := p_batch.others;
  v_amounts bigint[] := p_batch.amounts;
  v_refs bigint[] := p_batch.refs;
  v_requests jsonb[] := p_batch.requests;
  v_row record;
begin
  for v_row in
    select a.emit_to, array_agg('wallet.posted'::text order by i.n, a.code) as types, array_agg(i.txn_id::text order by i.n, a.code) as txn_ids,
           array_agg(jsonb_strip_nulls(jsonb_build_object('txn_id', i.txn_id, 'kind', i.kind, 'asset', a.code,
             'amount', case when i.asset = l.asset_id and i.other is not null or l.moved = 0 then i.amount else l.moved end,
             'owner', wallet.owner_of(i.main), 'other', wallet.owner_of(i.other),
             'ref', (select t.txn_id from wallet.txn t where t.id = i.ref limit 1), 'metadata', i.request -> 'metadata',
             'at', pawl.iso(p_now))) order by i.n, a.code) as payloads
    from (select l.ord, w.asset_id, sum(greatest(l.amount, 0))::bigint as moved
          from unnest(p_legs.ords, p_legs.wallets, p_legs.amounts) l (ord, wallet, amount)
          cross join lateral (select w.asset_id from wallet.wallet w where w.id = l.wallet limit 1) w
          group by l.ord, w.asset_id) l
    cross join lateral (select a.* from wallet.asset a where a.id = l.asset_id and a.emit_to is not null limit 1) a
    cross join lateral (
      select l.ord as n, v_txn_ids[l.ord] as txn_id, v_kinds[l.ord] as kind, v_assets[l.ord] as asset, v_mains[l.ord] as main,
             v_others[l.ord] as other, v_amounts[l.ord] as amount, v_refs[l.ord] as ref, v_requests[l.ord] as request) i
    group by a.emit_to
  loop
    perform pawl.send(v_row.emit_to, v_row.types, v_row.payloads, p_correlation_ids => v_row.txn_ids, p_actor => 'wallet');
  end loop;
end
$$;

-- Writes the transactions of a call: those that are posted, with the numbers from p_base + 1 on, then the refusals that are kept. All of them in one
-- statement and in the order of their keys, so that two callers with the same keys and other wallets cannot wait for each other.
-- p_refusals null: all are posted.
create or replace function wallet.batch_txns (p_batch wallet.batch, p_refusals text[], p_sentences text[], p_base bigint, p_at timestamptz)
  returns void
  language plpgsql
as $$
declare
  v_count bigint := cardinality(p_batch.txn_ids);
  v_posted bigint := v_count;
  v_numbers bigint[]; -- of each operation after p_base, null if it is not written; null: their positions
  v_written bigint;
  -- Plain variables: PL/pgSQL expands only these into arrays whose elements are read in constant time.
  v_txn_ids uuid[] := p_batch.txn_ids;
  v_kinds text[] := p_batch.kinds;
  v_assets integer[] := p_batch.assets;
  v_mains bigint[] := p_batch.mains;
  v_others bigint[] := p_batch.others;
  v_amounts bigint[] := p_batch.amounts;
  v_refs bigint[] := p_batch.refs;
  v_requests jsonb[] := p_batch.requests;
begin
  if p_refusals is not null then
    select array_agg(case when u.is_written then u.number end order by u.n), count(*) filter (where u.is_written),
           count(*) filter (where u.refusal is null)
    into v_numbers, v_count, v_posted
    from (
      select u.*, row_number() over (order by u.is_written desc, u.refusal is not null, u.n) as number
      from (select u.refusal, u.n, u.refusal is null or wallet.is_kept(u.kind, u.refusal) as is_written
            from unnest(p_batch.kinds, p_refusals) with ordinality u (kind, refusal, n)) u) u;
  end if;
  insert into wallet.txn (id, at, txn_id, kind, asset_id, wallet_id, other_id, amount, ref, request, refusal, sentence)
  select p_base + coalesce(v_numbers[i], i), p_at, v_txn_ids[i], v_kinds[i], v_assets[i], v_mains[i], v_others[i], coalesce(v_amounts[i], 0), v_refs[i],
         v_requests[i], p_refusals[i], p_sentences[i]
  from generate_series(1, cardinality(v_txn_ids)) i
  where v_numbers is null or v_numbers[i] is not null
  order by v_txn_ids[i]
  on conflict on constraint txn_key do nothing;
  get diagnostics v_written = row_count;
  -- Keys of refusals were new, as far as could be seen under these locks: if one was used meanwhile, the verdict is that of its use.
  if v_written < v_count
    and exists (select from generate_series(1, v_posted) i where not exists (select from wallet.txn t where t.id = p_base + i)) then
    raise exception 'a txn_id was used at the same time for something else' using errcode = '40001';
  end if;
end
$$;

-- Writes what is posted of p_batch (p_post, p_legs: entries and holds), and all transactions; see wallet.batch_txns. Returns the number before that
-- of the first transaction.
create or replace function wallet.batch_write (
  p_batch wallet.batch, p_refusals text[], p_sentences text[], p_post wallet.batch, p_legs wallet.legs, p_lefts bigint[], p_at timestamptz)
  returns bigint
  language plpgsql
as $$
declare
  v_base bigint := wallet.txn_base();
  -- Plain variables: PL/pgSQL expands only these into arrays whose elements are read in constant time.
  v_ords integer[] := p_legs.ords;
  v_wallets bigint[] := p_legs.wallets;
  v_changes bigint[] := p_legs.amounts;
  v_balances bigint[] := p_legs.balances;
  v_helds bigint[] := p_legs.helds;
  v_floors bigint[] := p_legs.floors;
  v_frozens boolean[] := p_legs.frozens;
  v_versions bigint[] := p_legs.versions;
begin
  insert into wallet.entry (wallet_id, version, txn, amount, balance, held, floor, frozen)
  select v_wallets[l], v_versions[l], v_base + v_ords[l], v_changes[l], v_balances[l], nullif(v_helds[l], 0), nullif(v_floors[l], 0),
         nullif(v_frozens[l], false)
  from generate_series(1, cardinality(v_ords)) l;
  perform wallet.batch_txns(p_batch, p_refusals, p_sentences, v_base, p_at);
  if p_post.kinds && array['hold', 'capture', 'void', 'expire'] then
    perform wallet.batch_holds(p_post, p_lefts, v_base, p_at);
  end if;
  return v_base;
end
$$;

-- New holds, and the end of those that were captured whole, voided or expired. p_lefts: how much was left of what each operation
-- of the caller's arrays refers to.
create or replace function wallet.batch_holds (p_batch wallet.batch, p_lefts bigint[], p_base bigint, p_at timestamptz)
  returns void
  language plpgsql
as $$
begin
  insert into wallet.hold (id, wallet_id, amount, expires_at)
  select p_base + i.ord, i.main, i.amount, p_at + (i.request ->> 'expires_in_s')::bigint * interval '1 s'
  from unnest(p_batch.kinds, p_batch.mains, p_batch.amounts, p_batch.requests) with ordinality i (kind, main, amount, request, ord)
  where i.kind = 'hold';
  -- An update in the shape of an insert that always meets its row: it goes from the operations to their holds and never, as a
  -- join might, over all holds to the operations.
  insert into wallet.hold (id, wallet_id, amount, status)
  select h.id, h.wallet_id, h.amount, e.status
  from (
    select i.ref, case max(i.kind) filter (where i.kind <> 'capture') when 'void' then 'VOIDED' when 'expire' then 'EXPIRED'
                  else case when sum(i.amount) = max(p_lefts[i.ord]) then 'CAPTURED' end end as status
    from unnest(p_batch.ords, p_batch.kinds, p_batch.refs, p_batch.amounts) i (ord, kind, ref, amount)
    where i.kind in ('capture', 'void', 'expire')
    group by i.ref) e
  cross join lateral (select h.* from wallet.hold h where h.id = e.ref limit 1) h
  where e.status is not null
  on conflict (id) do update set status = excluded.status;
end
$$;

-- The operations that are not posted: a row for each. p_base null: none of the call is posted; then the refusals that are kept are written here.
-- p_atomic_from: null, or the position of the first operation in a call that is posted whole or not at all.
create or replace function wallet.post_remaining (
  p_batch wallet.batch, p_refusals text[], p_sentences text[], p_asked bigint[], p_at timestamptz, p_base bigint, p_atomic_from integer)
  returns setof wallet.verdict
  language plpgsql
as $$
declare
  v_bad record;
begin
  if p_base is null and exists (select from unnest(p_batch.kinds, p_refusals) u (kind, refusal) where wallet.is_kept(u.kind, u.refusal)) then
    perform wallet.batch_txns(p_batch, p_refusals, p_sentences, wallet.txn_base(), p_at);
  end if;
  if 'known' = any (p_refusals) then
    perform pawl.replay_barrier();
  end if;
  if p_atomic_from is not null then
    select * into v_bad
    from (select t.ord, coalesce(t.refusal, 'key-reused') as refusal, coalesce(t.sentence, t.differs || ' differs') as sentence
          from wallet.post_replay(p_batch, p_refusals, p_asked) t where t.refusal is not null or t.differs is not null
          union all
          select u.n::integer, u.r, u.s from unnest(p_batch.kinds, p_refusals, p_sentences) with ordinality u (kind, r, s, n)
          where u.r <> 'known' and not wallet.is_kept(u.kind, u.r)) b
    order by b.ord limit 1;
    if found then
      raise exception 'item %: %', v_bad.ord + p_atomic_from - 1, v_bad.sentence using errcode = 'QW002', detail = v_bad.refusal;
    end if;
  end if;
  return query
    select * from wallet.post_replay(p_batch, p_refusals, p_asked)
    union all
    select u.n::integer, u.txn_id, false, u.r, case when u.r = 'busy' then format('the wallet of "%s" is locked by another transaction', u.s) else u.s end,
           null, u.kind, case when u.r = 'busy' then u.s end, null, null, null, null, null, null, null, null, null, null, null
    from unnest(p_batch.txn_ids, p_batch.kinds, p_refusals, p_sentences) with ordinality u (txn_id, kind, r, s, n)
    where u.r <> 'known' and not wallet.is_kept(u.kind, u.r);
end
$$;

-- The refusals, with those that are only known under the locks: "known" for keys that were decided meanwhile, "busy" for operations on
-- wallets that another transaction has locked.
create or replace function wallet.refusals_under_lock (
  p_txn_ids uuid[], p_legs wallet.legs, p_busy bigint[], inout refusals text[], inout sentences text[])
  language plpgsql
as $$
declare
  v_leg record;
begin
  if cardinality(p_busy) > 0 then
    for v_leg in
      select distinct on (l.ord) l.ord, wallet.owner_of(l.wallet) as owner from unnest(p_legs.ords, p_legs.wallets) l (ord, wallet)
      where (l.wallet in (select b from unnest(p_busy) b offset 0)) is true -- hashed
      order by l.ord, l.wallet
    loop
      refusals[v_leg.ord] := 'busy';
      sentences[v_leg.ord] := v_leg.owner; -- post_remaining makes a sentence of it
    end loop;
  end if;
  select array_agg(case when k.known then 'known' else u.refusal end order by u.n)
  into refusals
  from unnest(p_txn_ids, refusals) with ordinality u (txn_id, refusal, n)
  left join lateral (select true as known from wallet.txn t where t.txn_id = u.txn_id and u.refusal is null limit 1) k on true;
end
$$;

-- The amounts that follow from the kind or from what the operation refers to.
create or replace function wallet.batch_amounts (p_batch wallet.batch, p_lefts bigint[])
  returns bigint[]
  language plpgsql stable
as $$
begin
  return array(
    select case when i.kind in ('freeze', 'unfreeze', 'floor') then 0
                when i.kind = 'multi' then (select sum(l.amount) filter (where l.amount > 0) from wallet.legs_named(i.request) l)
                else coalesce(i.amount, i.available) end
    from unnest(p_batch.kinds, p_batch.amounts, p_lefts, p_batch.requests) with ordinality i (kind, amount, available, request, n)
    order by i.n);
end
$$;

-- The rows of operations that were posted, p_base being the number before that of the first. p_owners, p_others, p_assets: the caller's arrays.
create or replace function wallet.batch_verdicts (
  p_batch wallet.batch, p_legs wallet.legs, p_owners text[], p_others text[], p_assets text[], p_base bigint, p_at timestamptz)
  returns setof wallet.verdict
  language plpgsql stable
as $$
declare
  -- Plain variables: PL/pgSQL expands these, not the fields of a composite, into arrays whose elements are read in constant time.
  v_ords integer[] := p_batch.ords;
  v_txn_ids uuid[] := p_batch.txn_ids;
  v_kinds text[] := p_batch.kinds;
  v_assets integer[] := p_batch.assets;
  v_mains bigint[] := p_batch.mains;
  v_others bigint[] := p_batch.others;
  v_amounts bigint[] := p_batch.amounts;
  v_refs bigint[] := p_batch.refs;
  v_places integer[] := p_legs.ords;
  v_is_main boolean[] := p_legs.mains;
  v_changes bigint[] := p_legs.amounts;
  v_balances bigint[] := p_legs.balances;
  v_helds bigint[] := p_legs.helds;
  v_floors bigint[] := p_legs.floors;
  v_versions bigint[] := p_legs.versions;
begin
  -- A row for the leg of the wallet that the operation belongs to: it names its operation, so nothing can shift.
  return query
    select p.ord, p.txn_id, true, null::text, null::text, null::text, p.kind,
           coalesce(p_owners[p.ord], wallet.owner_of(p.main)),
           coalesce(p_others[p.ord], case when p.kind in ('topup', 'spend') then '@system' else wallet.owner_of(p.other) end),
           case when p.ref is null and p.kind <> 'multi' then coalesce(p_assets[p.ord], 'CREDIT') else wallet.asset_code(p.asset) end,
           p.amount, l.balance - l.amount, l.balance, l.held, l.balance - l.held - l.floor, l.version, l.balance, p_base + l.place, p_at
    from (
      select v_places[n] as place, v_changes[n] as amount, v_balances[n] as balance, v_helds[n] as held, v_floors[n] as floor, v_versions[n] as version
      from generate_series(1, cardinality(v_places)) n where v_is_main[n]) l
    cross join lateral (
      select v_ords[l.place] as ord, v_txn_ids[l.place] as txn_id, v_kinds[l.place] as kind, v_assets[l.place] as asset,
             v_mains[l.place] as main, v_others[l.place] as other, v_amounts[l.place] as amount, v_refs[l.place] as ref) p;
end
$$;

-- The operations of a call, with the ids that wallet.post_reference has found.
create or replace function wallet.batch_of (
  p_kinds text[], p_txn_ids uuid[], p_assets integer[], p_mains bigint[], p_others bigint[], p_amounts bigint[], p_refs bigint[], p_requests jsonb[])
  returns wallet.batch
  language plpgsql immutable
as $$
begin
  return row(case when cardinality(p_kinds) = 1 then array[1] else array(select generate_series(1, cardinality(p_kinds))) end,
             p_kinds, p_txn_ids, p_assets, p_mains, p_others,
             -- full length: an array that begins at the first position that is set would be read from there on
             coalesce(p_amounts, array_fill(null::bigint, array[cardinality(p_kinds)])), p_refs,
             case when p_requests is not null or p_kinds && array['capture', 'refund'] then
               array(select wallet.request_of(i.kind, i.amount, i.request)
                     from unnest(p_kinds, p_amounts, p_requests) with ordinality i (kind, amount, request, n) order by n) end)::wallet.batch;
end
$$;

-- p_skip_locked: operations on wallets that another transaction has locked are refused as "busy", which is not kept, instead of waiting.
create or replace function wallet.post_batch (
  p_kinds text[], p_txn_ids uuid[], p_owners text[], p_amounts bigint[], p_others text[], p_assets text[], p_refs uuid[],
  p_requests jsonb[], p_atomic_from integer, p_skip_locked boolean)
  returns setof wallet.verdict
  language plpgsql
as $$
declare
  v_of record := wallet.post_reference(p_kinds, p_txn_ids, p_owners, p_others, p_assets, p_refs, p_requests);
  v_batch wallet.batch := wallet.batch_of(p_kinds, p_txn_ids, v_of.assets, v_of.mains, v_of.others, p_amounts, v_of.refs, p_requests);
  v_legs wallet.legs;
  v_lock record;
  v_verdict record;
  v_post wallet.batch; -- those that are posted
  v_some boolean;      -- some are not
  v_run record;
  v_base bigint;
begin
  if array_position(v_of.refusals, null) is null then -- all are refused
    return query select * from wallet.post_remaining(v_batch, v_of.refusals, v_of.sentences, p_amounts, pawl.now(), null, p_atomic_from);
    return;
  end if;
  v_legs := wallet.batch_legs(v_batch, v_of.refusals);
  v_lock := wallet.post_lock(p_kinds, v_of.assets, coalesce(v_legs.wallets, '{}'), p_skip_locked);
  -- From here on under the locks.
  v_verdict := wallet.batch_judge(v_batch, v_legs, p_amounts, v_lock.systems, v_lock.stripes, v_lock.busy, pawl.now(), v_of.refusals, v_of.sentences);
  v_batch.amounts := v_verdict.amounts;
  v_some := array_remove(v_verdict.refusals, null) <> '{}';
  v_post := v_batch;
  v_legs := v_verdict.legs;
  if v_some or v_verdict.is_revised then
    v_post := wallet.batch_filter(v_batch, v_verdict.refusals);
    if cardinality(v_post.ords) > 0 then
      v_legs := wallet.legs_striped(wallet.batch_legs(v_post, null), v_lock.systems, v_lock.stripes);
      v_run := wallet.legs_run(v_legs, case when cardinality(p_kinds) = 1 then p_kinds[1] end, v_post.requests[1], v_verdict.at, null);
      v_legs := v_run.legs;
    end if;
  end if;
  if cardinality(v_post.ords) > 0 then
    v_base := wallet.batch_write(v_batch, case when v_some then v_verdict.refusals end, v_verdict.sentences, v_post, v_legs, v_verdict.lefts, v_verdict.at);
    return query select * from wallet.batch_verdicts(v_post, v_legs, p_owners, p_others, p_assets, v_base, v_verdict.at);
    if v_of.emits then
      perform wallet.emit(v_post, v_legs, v_verdict.at);
    end if;
  end if;
  if v_some then
    return query select * from wallet.post_remaining(v_batch, v_verdict.refusals, v_verdict.sentences, p_amounts, v_verdict.at, v_base,
                                                     p_atomic_from);
  end if;
end
$$;
