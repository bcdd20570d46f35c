-- reference.sql - resolves the names in an operation to ids, and lists the wallets that it would change.
-- Nothing here is locked: wallets, owners and the wallets of a transaction never change.
-- Invariant: the wallet of an operation comes from its ref for capture, void, expire and refund, from its legs for multi, and from
-- its owner for all others; never from two of them.
-- Names are looked up one by one (lateral, limit 1): a join might start with the ledger's tables and read all of their rows.

-- The wallet that represents "@system" in an asset: its first stripe.
create or replace function wallet.system_id (p_asset integer)
  returns bigint
  language sql stable
as $$ select w.id from wallet.wallet w where w.owner = '@system' and w.asset_id = p_asset and w.stripe = 0 $$;

create or replace function wallet.owner_of (p_wallet bigint)
  returns text
  language sql stable
as $$ select w.owner from wallet.wallet w where w.id = p_wallet $$;

-- The legs of a request as its author names them; wallet is null where there is none.
create or replace function wallet.legs_named (p_request jsonb)
  returns table (wallet bigint, owner text, amount bigint, asset_id integer, asset text)
  language sql stable
as $$
  select w.id, l.leg ->> 'owner', (l.leg ->> 'amount')::bigint, a.id, coalesce(l.leg ->> 'asset', 'CREDIT')
  from jsonb_array_elements(p_request -> 'legs') l (leg)
  left join lateral (select a.id from wallet.asset a where a.code = coalesce(l.leg ->> 'asset', 'CREDIT') limit 1) a on true
  left join lateral (
    select w.id from wallet.wallet w where w.owner = l.leg ->> 'owner' and w.asset_id = a.id and w.stripe = 0 limit 1) w on true
$$;

-- A row per operation: see wallet.post_reference. A table function of one statement, so that it is inlined.
create or replace function wallet.items_referred (
  p_kinds text[], p_txn_ids uuid[], p_owners text[], p_others text[], p_assets text[], p_refs uuid[])
  returns table (ord integer, main bigint, other bigint, asset integer, ref bigint, refusal text, sentence text, emits boolean)
  language sql stable
as $$
  with found as (
    select u.ord, u.kind, u.owner, u.other, coalesce(u.asset, 'CREDIT') as asset, t.id as ref, k.known, a.emits,
           case when r.refers then t.asset_id else a.id end as asset_id, case when r.refers then t.wallet_id else w.id end as main,
           case when u.kind = 'refund' then t.other_id else o.id end as other_id,
           u.kind in ('capture', 'void', 'expire') and (t.id is null or t.kind <> 'hold' or t.refusal is not null) as no_hold,
           u.kind = 'refund' and t.id is null as no_txn,
           u.kind in ('topup', 'spend', 'transfer', 'capture') and o.id is null as no_other,
           u.asset is not null and t.id is not null and (t.asset_id = a.id) is not true as wrong_asset,
           u.kind = 'capture' and t.wallet_id = o.id as to_itself
    from (select n as ord, p_kinds[n] as kind, p_txn_ids[n] as txn_id, p_owners[n] as owner, p_others[n] as other, p_assets[n] as asset,
                 p_refs[n] as ref
          from generate_series(1, cardinality(p_kinds)) n) u
    cross join lateral (select u.kind in ('capture', 'void', 'expire', 'refund') as refers) r
    left join lateral (select true as known from wallet.txn k where k.txn_id = u.txn_id limit 1) k on true
    left join lateral (select t.* from wallet.txn t where t.txn_id = u.ref and r.refers limit 1) t on true
    left join lateral (select a.id, a.emit_to is not null as emits from wallet.asset a where a.code = coalesce(u.asset, 'CREDIT') limit 1) a on true
    left join lateral (
      select w.id from wallet.wallet w where w.owner = u.owner and w.asset_id = a.id and w.stripe = 0 limit 1) w on true
    left join lateral (
      select o.id from wallet.wallet o
      where o.asset_id = case when r.refers then t.asset_id else a.id end and o.stripe = 0
        and o.owner = case when u.kind in ('topup', 'spend') then '@system' when u.kind = 'transfer' then u.other
                           when u.kind = 'capture' then coalesce(u.other, '@system') end
      limit 1) o on true
  ), judged as (
    select f.*,
           case when f.known then 'known' when f.no_hold then 'hold-unknown' when f.no_txn then 'transaction-unknown'
                when f.wrong_asset then 'asset-mismatch' when f.to_itself then 'same-wallet'
                when f.main is null and f.kind <> 'multi' or f.no_other then 'wallet-unknown' end as refusal
    from found f
    order by f.ord -- once, instead of in each aggregate
  )
  select j.ord, j.main, j.other_id, j.asset_id, j.ref, j.refusal,
         case j.refusal
           when 'hold-unknown' then 'there is no such hold'
           when 'transaction-unknown' then 'there is no such transaction'
           when 'asset-mismatch' then format('asset is "%s", it was another one', j.asset)
           when 'same-wallet' then format('to must not be "%s", whose hold it is', j.other)
           when 'wallet-unknown' then format('there is no wallet of "%s" in %s',
             coalesce(case when j.main is null then j.owner else j.other end, '@system'), j.asset)
           end,
         j.emits or j.ref is not null or j.kind = 'multi'
  from judged j
$$;

-- For each operation: its wallet, the other wallet, the asset, the transaction it refers to; or the refusal if one does not exist.
-- A key that was decided before has the refusal "known". emits: an asset may have events.
create or replace function wallet.post_reference (
  p_kinds text[], p_txn_ids uuid[], p_owners text[], p_others text[], p_assets text[], p_refs uuid[], p_requests jsonb[],
  out mains bigint[], out others bigint[], out assets integer[], out refs bigint[], out refusals text[], out sentences text[],
  out emits boolean)
  language plpgsql stable
as $$
declare
  v_row record;
begin
  if cardinality(p_kinds) = 1 then -- aggregates would cost more than what they aggregate
    select array[r.main], array[r.other], array[r.asset], array[r.ref], array[r.refusal], array[r.sentence], r.emits
    into mains, others, assets, refs, refusals, sentences, emits
    from wallet.items_referred(p_kinds, p_txn_ids, p_owners, p_others, p_assets, p_refs) r;
  else
    select array_agg(r.main), array_agg(r.other), array_agg(r.asset), array_agg(r.ref), array_agg(r.refusal), array_agg(r.sentence), bool_or(r.emits)
    into mains, others, assets, refs, refusals, sentences, emits
    from wallet.items_referred(p_kinds, p_txn_ids, p_owners, p_others, p_assets, p_refs) r;
  end if;
  if 'multi' = any (p_kinds) then -- their wallets are in their legs
    for v_row in
      select u.ord, m.*
      from unnest(p_kinds, p_requests) with ordinality u (kind, request, ord)
      cross join lateral (
        select min(l.wallet) filter (where l.owner <> '@system') as main,
               array_agg(l.asset_id order by l.wallet) filter (where l.owner <> '@system') as ids,
               min(l.owner) filter (where l.wallet is null) as missing, min(l.asset) filter (where l.wallet is null) as asset_missing
        from wallet.legs_named(u.request) l) m
      where u.kind = 'multi'
    loop
      mains[v_row.ord] := v_row.main;
      assets[v_row.ord] := v_row.ids[1];
      if v_row.missing is not null and refusals[v_row.ord] is null then
        refusals[v_row.ord] := 'wallet-unknown';
        sentences[v_row.ord] := format('there is no wallet of "%s" in %s', v_row.missing, v_row.asset_missing);
      end if;
    end loop;
  end if;
end
$$;

-- What a transaction did to each wallet, with @system as one.
create or replace function wallet.legs_posted (p_txn bigint)
  returns table (wallet bigint, amount bigint)
  language sql stable
as $$
  select case when w.owner = '@system' then wallet.system_id(w.asset_id) else w.id end, e.amount
  from wallet.entry e cross join lateral (select w.* from wallet.wallet w where w.id = e.wallet_id limit 1) w
  where e.txn = p_txn
$$;

-- Does money change sides?
create or replace function wallet.has_other (p_kind text)
  returns boolean
  language sql immutable
as $$ select p_kind in ('topup', 'spend', 'transfer', 'capture') $$;

-- What an operation of such a kind, or of one with a single leg, does to the wallet that it belongs to (side 1) and to the other (side 2).
create or replace function wallet.leg_amount (p_kind text, p_side integer, p_amount bigint)
  returns bigint
  language sql immutable
as $$
  select case when p_kind not in ('topup', 'spend', 'transfer', 'capture') then 0 when (p_kind = 'topup') = (p_side = 1) then p_amount else -p_amount end
$$;

-- And to what is held of it.
create or replace function wallet.leg_hold (p_kind text, p_side integer, p_amount bigint)
  returns bigint
  language sql immutable
as $$
  select case when p_side = 2 then 0 when p_kind = 'hold' then p_amount when p_kind in ('capture', 'void', 'expire') then -p_amount else 0 end
$$;

-- The legs of one operation of a kind that names its wallets. One expression, so that it is inlined.
create or replace function wallet.legs_of_one (p_kind text, p_main bigint, p_other bigint, p_amount bigint)
  returns wallet.legs
  language sql immutable
as $$
  select case when wallet.has_other(p_kind) then
    row(array[1, 1], array[p_main, p_other], array[wallet.leg_amount(p_kind, 1, p_amount), wallet.leg_amount(p_kind, 2, p_amount)],
        array[wallet.leg_hold(p_kind, 1, p_amount), wallet.leg_hold(p_kind, 2, p_amount)], array[true, false],
        null, null, null, null, null)::wallet.legs
  else
    row(array[1], array[p_main], array[wallet.leg_amount(p_kind, 1, p_amount)], array[wallet.leg_hold(p_kind, 1, p_amount)], array[true],
        null, null, null, null, null)::wallet.legs
  end
$$;

-- The legs of operations of any kind.
create or replace function wallet.batch_legs_any (p_batch wallet.batch, p_refusals text[])
  returns wallet.legs
  language plpgsql stable
as $$
declare
  v_legs wallet.legs;
begin
  select array_agg(l.ord), array_agg(l.wallet), array_agg(l.amount), array_agg(l.hold), array_agg(l.main)
  into v_legs.ords, v_legs.wallets, v_legs.amounts, v_legs.holds, v_legs.mains
  from (
    select i.ord::integer, l.wallet, l.amount, l.hold, l.wallet = i.main as main
    from unnest(p_batch.kinds, p_batch.mains, p_batch.others, p_batch.amounts, p_batch.refs, p_batch.requests, p_refusals)
      with ordinality i (kind, main, other, amount, ref, request, refusal, ord)
    cross join lateral (
      select 1, i.main, wallet.leg_amount(i.kind, 1, i.amount), wallet.leg_hold(i.kind, 1, i.amount)
      where i.kind not in ('multi', 'refund')
      union all
      select 2, i.other, wallet.leg_amount(i.kind, 2, i.amount), 0
      where wallet.has_other(i.kind)
      union all
      select 3, n.wallet, n.amount, 0 from wallet.legs_named(i.request) n where i.kind = 'multi'
      union all
      select 4, r.wallet, case when i.other is null then -r.amount else -sign(r.amount)::bigint * i.amount end, 0
      from wallet.legs_posted(i.ref) r where i.kind = 'refund'
    ) l (side, wallet, amount, hold)
    where i.refusal is null
    order by i.ord, l.side
  ) l;
  return v_legs;
end
$$;

-- What each operation does: nothing of those that were refused.
create or replace function wallet.batch_legs (p_batch wallet.batch, p_refusals text[])
  returns wallet.legs
  language plpgsql stable
as $$
declare
  v_legs wallet.legs;
begin
  if p_batch.kinds && array['multi', 'refund'] then
    return wallet.batch_legs_any(p_batch, p_refusals);
  elsif cardinality(p_batch.kinds) = 1 then -- without a query
    if p_refusals[1] is null then
      v_legs := wallet.legs_of_one(p_batch.kinds[1], p_batch.mains[1], p_batch.others[1], p_batch.amounts[1]);
    end if;
    return v_legs;
  end if;
  -- Nearly always: two legs at most, and a shorter plan.
  select array_agg(l.ord), array_agg(l.wallet), array_agg(l.amount), array_agg(l.hold), array_agg(l.main)
  into v_legs.ords, v_legs.wallets, v_legs.amounts, v_legs.holds, v_legs.mains
  from (
    select i.ord::integer, case s.side when 1 then i.main else i.other end as wallet, s.side = 1 as main,
           wallet.leg_amount(i.kind, s.side, i.amount) as amount, wallet.leg_hold(i.kind, s.side, i.amount) as hold
    from unnest(p_batch.kinds, p_batch.mains, p_batch.others, p_batch.amounts, p_refusals) with ordinality i (kind, main, other, amount, refusal, ord)
    cross join (values (1), (2)) s (side)
    where i.refusal is null and (s.side = 1 or wallet.has_other(i.kind))
    order by i.ord, s.side
  ) l;
  return v_legs;
end
$$;
