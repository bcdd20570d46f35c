-- together.sql - the heart of wallet.post: operations of which none needs to see what another one did.
-- Called by wallet.post, after its checks. Everything here runs with the rights of wallet.post.

-- What was asked for besides the columns: as given, and whether an amount was left open.
create or replace function wallet.request_of (p_kind text, p_amount bigint, p_request jsonb)
  returns jsonb
  language sql immutable
as $$
  select case when p_amount is null and p_kind in ('capture', 'refund') then coalesce(p_request, '{}') || '{"whole": true}'
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
  p_txn wallet.txn, p_kind text, p_asset smallint, p_main bigint, p_other bigint, p_amount bigint, p_ref bigint, p_request jsonb)
  returns text
  language sql immutable
as $$
  select case
    when p_txn.kind <> p_kind then 'kind'
    when p_txn.ref is distinct from p_ref then 'ref'
    when p_txn.asset_id is distinct from p_asset then 'asset'
    when p_txn.wallet_id is distinct from p_main then 'owner'
    when p_txn.other_id is distinct from p_other then 'other'
    when p_txn.request is not distinct from p_request and p_txn.amount = coalesce(p_amount, p_txn.amount) then null
    when p_txn.amount <> p_amount or coalesce(p_txn.request ? 'whole', false) <> coalesce(p_request ? 'whole', false) then 'amount'
    else (select k from unnest(array['legs', 'floor', 'expires_in_s', 'metadata']) with ordinality f (k, n)
          where p_txn.request -> k is distinct from p_request -> k order by n limit 1)
  end
$$;

-- Keys that have been decided, by this call or long ago: what was said then.
create or replace function wallet.post_told (p_batch wallet.batch, p_refusals text[], p_known integer[], p_asked bigint[])
  returns table (
    ord integer, txn_id uuid, is_new boolean, refusal text, sentence text, differs text, kind text, owner text, other text,
    asset text, amount bigint, balance_before bigint, balance bigint, held bigint, available bigint, version bigint,
    balance_now bigint, number bigint, at timestamptz)
  language plpgsql stable
as $$
#variable_conflict use_column
begin
  return query
  select i.ord, t.txn_id, i.ord <> all (p_known), t.refusal, t.sentence,
         wallet.difference(t.row, i.kind, i.asset, i.main, i.other, i.asked, i.ref, i.request),
         t.kind, w.owner, o.owner, a.code, t.amount, e.balance - e.amount, e.balance, coalesce(e.held, 0),
         e.balance - coalesce(e.held, 0) - coalesce(e.floor, 0), e.version, s.balance, t.id, t.at
  from unnest(p_batch.ords, p_batch.kinds, p_batch.txn_ids, p_batch.assets, p_batch.mains, p_batch.others, p_batch.refs,
              p_batch.requests, p_asked, p_refusals) i (ord, kind, txn_id, asset, main, other, ref, request, asked, refusal)
  cross join lateral (select t as row, t.* from wallet.txn t where t.txn_id = i.txn_id limit 1) t
  cross join lateral (select a.code from wallet.asset a where a.id = t.asset_id limit 1) a
  cross join lateral (select w.owner from wallet.wallet w where w.id = t.wallet_id limit 1) w
  cross join lateral (select s.balance from wallet.state s where s.id = t.wallet_id limit 1) s
  left join lateral (select o.owner from wallet.wallet o where o.id = t.other_id limit 1) o on true
  left join lateral (select e.* from wallet.entry e where e.txn = t.id and e.wallet_id = t.wallet_id limit 1) e on true
  where i.refusal is not null;
end
$$;

create or replace function wallet.asset_code (p_asset smallint)
  returns text
  language sql stable
as $$ select a.code from wallet.asset a where a.id = p_asset $$;

-- Tells the bus, in the same transaction: a command "wallet.posted" for each transaction of an asset that wants it.
create or replace function wallet.emit (p_batch wallet.batch, p_now timestamptz)
  returns void
  language plpgsql
as $$
declare
  v_row record;
begin
  for v_row in
    select a.emit_to, array_agg('wallet.posted'::text order by i.n) as types, array_agg(i.txn_id::text order by i.n) as txn_ids,
           array_agg(jsonb_strip_nulls(jsonb_build_object('txn_id', i.txn_id, 'kind', i.kind, 'asset', a.code, 'amount', i.amount,
             'owner', wallet.owner_of(i.main), 'other', wallet.owner_of(i.other), 'metadata', i.request -> 'metadata',
             'at', to_char(p_now at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'))) order by i.n) as payloads
    from unnest(p_batch.txn_ids, p_batch.kinds, p_batch.assets, p_batch.mains, p_batch.others, p_batch.amounts, p_batch.requests)
      with ordinality i (txn_id, kind, asset, main, other, amount, request, n)
    join wallet.asset a on a.id = i.asset
    where a.emit_to is not null
    group by a.emit_to
  loop
    perform pawl.send(v_row.emit_to, v_row.types, v_row.payloads, p_correlation_ids => v_row.txn_ids, p_actor => 'wallet');
  end loop;
end
$$;

-- Writes what was decided: transactions, entries, one update per wallet, holds. A row per operation, in order.
create or replace function wallet.batch_write (p_batch wallet.batch, p_legs wallet.legs, p_now timestamptz)
  returns table (place integer, balance bigint, amount bigint, held bigint, floor bigint, version bigint, number bigint)
  language plpgsql
as $$
#variable_conflict use_column
declare
  v_base bigint := nextval('wallet.txn_seq') - 1; -- places begin with 1
  -- These stand alone in their batch.
  v_floor bigint := case when p_batch.kinds[1] = 'floor' then (p_batch.requests[1] ->> 'floor')::bigint end;
  v_frozen boolean := case p_batch.kinds[1] when 'freeze' then true when 'unfreeze' then false end;
  v_told bigint;
begin
  return query
  with leg as materialized (
    select l.ord, l.main, l.wallet, l.amount, coalesce(v_floor, s.floor) as floor, coalesce(v_frozen, s.frozen) as frozen,
           (s.balance + sum(l.amount) over run)::bigint as balance, (s.held + sum(l.hold) over run)::bigint as held,
           s.version + row_number() over run as version, lead(l.ord) over run is null as last
    from unnest(p_legs.ords, p_legs.wallets, p_legs.amounts, p_legs.holds, p_legs.mains) l (ord, wallet, amount, hold, main)
    cross join lateral (select s.* from wallet.state s where s.id = l.wallet limit 1) s
    window run as (partition by l.wallet order by l.ord)
  ), entered as (
    insert into wallet.entry (wallet_id, version, txn, amount, balance, held, floor, frozen)
    select l.wallet, l.version, v_base + l.ord, l.amount, l.balance, nullif(l.held, 0), nullif(l.floor, 0), nullif(l.frozen, false)
    from leg l
  ), moved as (
    update wallet.state s
    set balance = l.balance, held = l.held, version = l.version, floor = l.floor, frozen = l.frozen, last_at = p_now
    from leg l
    where l.last and s.id = l.wallet
  )
  select l.ord, l.balance, l.amount, l.held, l.floor, l.version, v_base + l.ord from leg l where l.main order by l.ord;

  with told as (
    insert into wallet.txn (id, at, txn_id, kind, asset_id, wallet_id, other_id, amount, ref, request)
    select v_base + i.ord, p_now, i.txn_id, i.kind, i.asset, i.main, i.other, i.amount, i.ref, i.request
    from unnest(p_batch.txn_ids, p_batch.kinds, p_batch.assets, p_batch.mains, p_batch.others, p_batch.amounts, p_batch.refs,
                p_batch.requests) with ordinality i (txn_id, kind, asset, main, other, amount, ref, request, ord)
    on conflict on constraint txn_key do nothing
    returning 1
  )
  select count(*) into v_told from told;
  if v_told < cardinality(p_batch.txn_ids) then
    raise exception 'a txn_id was used at the same time for something else' using errcode = '40001';
  end if;
  if p_batch.kinds && array['hold', 'capture', 'void', 'expire'] then
    perform wallet.batch_holds(p_batch, v_base, p_now);
  end if;
end
$$;

create or replace function wallet.batch_holds (p_batch wallet.batch, p_base bigint, p_now timestamptz)
  returns void
  language plpgsql
as $$
begin
  insert into wallet.hold (id, wallet_id, amount, expires_at)
  select p_base + i.ord, i.main, i.amount, p_now + (i.request ->> 'expires_in_s')::bigint * interval '1 s'
  from unnest(p_batch.kinds, p_batch.mains, p_batch.amounts, p_batch.requests) with ordinality i (kind, main, amount, request, ord)
  where i.kind = 'hold';
  -- An update in the shape of an insert that always meets its row: it goes from the operations to their holds and never, as a
  -- join might, over all holds to the operations.
  insert into wallet.hold (id, wallet_id, amount, captured, status)
  select h.id, h.wallet_id, h.amount, h.captured + case i.kind when 'capture' then i.amount else 0 end,
         case i.kind when 'void' then 'VOIDED' when 'expire' then 'EXPIRED'
                     else case when h.captured + i.amount = h.amount then 'CAPTURED' else h.status end end
  from unnest(p_batch.kinds, p_batch.refs, p_batch.amounts) i (kind, ref, amount)
  cross join lateral (select h.* from wallet.hold h where h.id = i.ref limit 1) h
  where i.kind in ('capture', 'void', 'expire')
  on conflict (id) do update set captured = excluded.captured, status = excluded.status;
end
$$;

-- Refusals that are kept. Their keys are new, as far as anyone under these locks can see.
create or replace function wallet.batch_refuse (p_batch wallet.batch, p_refusals text[], p_sentences text[], p_now timestamptz)
  returns void
  language plpgsql
as $$
begin
  insert into wallet.txn (id, at, txn_id, kind, asset_id, wallet_id, other_id, amount, ref, request, refusal, sentence)
  select b.base + i.ord, p_now, i.txn_id, i.kind, i.asset, i.main, i.other, coalesce(i.amount, 0), i.ref, i.request, i.refusal, i.sentence
  from (select nextval('wallet.txn_seq') - 1 as base) b
  cross join unnest(p_batch.txn_ids, p_batch.kinds, p_batch.assets, p_batch.mains, p_batch.others, p_batch.amounts, p_batch.refs,
              p_batch.requests, p_refusals, p_sentences)
    with ordinality i (txn_id, kind, asset, main, other, amount, ref, request, refusal, sentence, ord)
  where wallet.is_kept(i.refusal)
  on conflict on constraint txn_key do nothing;
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

-- Those that are not posted: keeps the refusals that are kept, and tells all of them.
-- p_atomic_from: null, or the place of the first operation in a call that is posted whole or not at all.
create or replace function wallet.post_rest (
  p_batch wallet.batch, p_refusals text[], p_sentences text[], p_known integer[], p_asked bigint[], p_now timestamptz,
  p_atomic_from integer)
  returns table (
    ord integer, txn_id uuid, is_new boolean, refusal text, sentence text, differs text, kind text, owner text, other text,
    asset text, amount bigint, balance_before bigint, balance bigint, held bigint, available bigint, version bigint,
    balance_now bigint, number bigint, at timestamptz)
  language plpgsql
as $$
#variable_conflict use_column
declare
  v_bad record;
begin
  perform wallet.batch_refuse(p_batch, p_refusals, p_sentences, p_now);
  if p_atomic_from is not null then
    select * into v_bad
    from (select t.ord, coalesce(t.refusal, 'key-reused') as refusal, coalesce(t.sentence, t.differs || ' differs') as sentence
          from wallet.post_told(p_batch, p_refusals, p_known, p_asked) t where t.refusal is not null or t.differs is not null
          union all
          select n::integer, r, p_sentences[n] from unnest(p_refusals) with ordinality u (r, n)
          where r <> 'known' and not wallet.is_kept(r)) b
    order by b.ord limit 1;
    if found then
      raise exception 'item %: %', v_bad.ord + p_atomic_from - 1, v_bad.sentence using errcode = 'QW002', detail = v_bad.refusal;
    end if;
  end if;
  return query
    select * from wallet.post_told(p_batch, p_refusals, p_known, p_asked)
    union all
    select u.n::integer, u.txn_id, false, u.r, u.s, null, u.kind, null, null, null, null, null, null, null, null, null, null, null, null
    from unnest(p_batch.txn_ids, p_batch.kinds, p_refusals, p_sentences) with ordinality u (txn_id, kind, r, s, n)
    where u.r <> 'known' and not wallet.is_kept(u.r);
end
$$;

create or replace function wallet.post_together (
  p_kinds text[], p_txn_ids uuid[], p_owners text[], p_amounts bigint[], p_others text[], p_assets text[], p_refs uuid[],
  p_requests jsonb[], p_atomic_from integer)
  returns table (
    ord integer, txn_id uuid, is_new boolean, refusal text, sentence text, differs text, kind text, owner text, other text,
    asset text, amount bigint, balance_before bigint, balance bigint, held bigint, available bigint, version bigint,
    balance_now bigint, number bigint, at timestamptz)
  language plpgsql
as $$
#variable_conflict use_column
declare
  c_again constant text := 'known'; -- in the place of a refusal: not to be posted, because its key has been used
  v_of record;
  v_ask record;
  v_lock record;
  v_batch wallet.batch; -- all of them
  v_post wallet.batch;  -- those that are posted
  v_some boolean;       -- some are not
  v_legs wallet.legs;
  v_refusals text[];
  v_sentences text[];
  v_known integer[];
  v_now timestamptz;
begin
  v_of := wallet.post_refer(p_kinds, p_owners, p_others, p_assets, p_refs, p_requests);
  v_refusals := v_of.refusals;
  v_sentences := v_of.sentences;
  v_batch := row(array(select generate_series(1, cardinality(p_kinds))), p_kinds, p_txn_ids, v_of.assets, v_of.mains, v_of.others,
    -- full length: an array that begins at the first place that is set would be read from there on
    coalesce(p_amounts, array_fill(null::bigint, array[cardinality(p_kinds)])), v_of.refs, case when p_requests is not null or p_refs is not null then
                 array(select wallet.request_of(i.kind, i.amount, i.request)
                       from unnest(p_kinds, p_amounts, p_requests) with ordinality i (kind, amount, request, n) order by n) end)::wallet.batch;
  v_legs := wallet.batch_legs(v_batch, v_refusals);
  perform pawl.drawing(3);
  v_lock := wallet.post_lock(array(select distinct w from unnest(v_legs.wallets) w));
  v_now := greatest(v_lock.last_at, pawl.now());

  -- From here on under the locks. Keys that were used are told again.
  v_known := array(select i.ord::integer from unnest(p_txn_ids) with ordinality i (txn_id, ord)
                   cross join lateral (select from wallet.txn t where t.txn_id = i.txn_id limit 1) t);
  if cardinality(v_known) > 0 then
    perform pawl.replay_barrier();
    v_refusals := array(select case when n = any (v_known) then c_again else v_refusals[n] end
                        from generate_series(1, cardinality(p_kinds)) n order by n);
    v_legs := wallet.batch_legs(v_batch, v_refusals); -- what they brought then must not pay for what is asked for now
  end if;
  if p_refs is not null or p_kinds && array['multi', 'freeze', 'unfreeze', 'floor'] then
    v_ask := wallet.batch_ask(v_batch, v_now, v_sentences, v_batch.amounts, v_refusals);
    v_batch.amounts := v_ask.amounts;
    v_refusals := v_ask.refusals;
    v_sentences := v_ask.sentences;
    v_legs := wallet.batch_legs(v_batch, v_refusals);
  end if;
  v_legs := wallet.legs_striped(v_legs, v_lock.systems, v_lock.stripes);
  if wallet.legs_trouble(v_legs) then
    v_ask := wallet.legs_decide(p_kinds, v_legs, v_sentences, v_refusals);
    v_refusals := v_ask.refusals;
    v_sentences := v_ask.sentences;
  end if;

  v_some := array_remove(v_refusals, null) <> '{}';
  v_post := v_batch;
  if v_some then
    v_post := wallet.batch_filter(v_batch, v_refusals);
    v_legs := wallet.legs_striped(wallet.batch_legs(v_post, null), v_lock.systems, v_lock.stripes);
  end if;
  if cardinality(v_post.ords) > 0 then
    return query
      select r.ord, r.txn_id, true, null::text, null::text, null::text, r.kind,
             coalesce(p_owners[r.ord], wallet.owner_of(r.main)),
             coalesce(p_others[r.ord], case when r.kind in ('topup', 'spend') then '@system' else wallet.owner_of(r.other) end),
             case when r.ref is null and r.kind <> 'multi' then coalesce(p_assets[r.ord], 'CREDIT') else wallet.asset_code(r.asset) end,
             r.amount, r.balance - r.change, r.balance, r.held, r.balance - r.held - r.floor, r.version, r.balance, r.number, v_now
      from rows from (
        unnest(v_post.ords, v_post.txn_ids, v_post.kinds, v_post.assets, v_post.mains, v_post.others, v_post.amounts, v_post.refs),
        wallet.batch_write(v_post, v_legs, v_now))
        r (ord, txn_id, kind, asset, main, other, amount, ref, place, balance, change, held, floor, version, number);
    if exists (select from wallet.asset a where a.emit_to is not null) then
      perform wallet.emit(v_post, v_now);
    end if;
  end if;
  if v_some then
    return query select * from wallet.post_rest(v_batch, v_refusals, v_sentences, v_known, p_amounts, v_now, p_atomic_from);
  end if;
end
$$;
