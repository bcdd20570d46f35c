-- decide.sql - decides which operations are posted. Called under the locks, so what it reads stays true until the transaction ends.
-- The number of statements does not depend on the number of operations.

-- Refusals that are kept under their key; the others were never decided. An expiry has no key of a client's, so it keeps none.
create or replace function wallet.is_kept (p_kind text, p_refusal text)
  returns boolean
  language sql immutable
as $$
  select p_kind <> 'expire'
         and p_refusal in ('insufficient-funds', 'balance-limit', 'wallet-frozen', 'hold-ended', 'over-captured', 'over-refunded')
$$;

-- What operations refer to: how much is left of it, or why it cannot be. What was captured or refunded is the sum of the
-- transactions that did it, added up once for each hold or transaction.
create or replace function wallet.batch_facts (p_batch wallet.batch, p_refusals text[], p_now timestamptz)
  returns wallet.facts
  language plpgsql stable
as $$
declare
  v_facts wallet.facts;
begin
  select array_agg(f.slot), array_agg(f.available), array_agg(f.total), array_agg(f.whole), array_agg(f.refusal),
         array_agg(case f.refusal
           when 'hold-ended' then format('the hold is %s', case when f.status = 'OPEN' then 'expired' else lower(f.status) end)
           when 'hold-not-due' then 'the hold has not expired yet'
           when 'not-refundable' then format('a %s cannot be refunded', case when f.refused then 'refused ' else '' end || f.of_kind)
           end)
  into v_facts.slots, v_facts.lefts, v_facts.totals, v_facts.wholes, v_facts.refusals, v_facts.sentences
  from (
    select u.n, case when t.id is not null then first_value(u.n) over same end::integer as slot,
           case when t.id is not null then t.amount - first_value(s.used) over same end::bigint as available, t.amount as total,
           u.kind = 'refund' and t.other_id is null as whole, h.status, t.kind as of_kind, t.refusal is not null as refused,
           case when u.kind = 'refund' then
                  case when t.kind not in ('topup', 'spend', 'transfer', 'multi', 'capture') or t.refusal is not null then 'not-refundable' end
                when h.status <> 'OPEN' then 'hold-ended'
                when u.kind = 'capture' and h.expires_at <= p_now then 'hold-ended'
                when u.kind = 'expire' and (h.expires_at > p_now) is not false then 'hold-not-due'
           end as refusal
    from (select i.*, i.kind in ('capture', 'void', 'expire', 'refund') and i.refusal is null as refers,
                 row_number() over (partition by i.ref, i.kind = 'refund', i.refusal is null order by i.n) = 1 as first
          from unnest(p_batch.kinds, p_batch.refs, p_refusals) with ordinality i (kind, ref, refusal, n)) u
    left join lateral (select t.* from wallet.txn t where t.id = u.ref and u.refers limit 1) t on true
    left join lateral (select h.* from wallet.hold h where h.id = u.ref and u.refers and u.kind <> 'refund' limit 1) h on true
    left join lateral (
      select coalesce(sum(c.amount), 0) as used from wallet.txn c
      where u.first and u.refers and c.ref = u.ref and c.refusal is null
        and c.kind = case when u.kind = 'refund' then 'refund' else 'capture' end) s on true
    window same as (partition by u.ref, u.kind = 'refund', u.refusal is null order by u.n)
    order by u.n
  ) f;
  return v_facts;
end
$$;

-- Is a wallet in this state short of funds, over the limit, or frozen?
create or replace function wallet.is_trouble (p_balance bigint, p_held bigint, p_floor bigint, p_frozen boolean)
  returns boolean
  language sql immutable
as $$
  select p_frozen or p_balance - p_held < p_floor or p_balance > 9007199254740991 and p_floor >= -9007199254740991
$$;

-- wallet.legs_run for the legs of one operation, which names each wallet once: aggregates would cost more than what they aggregate.
-- freeze, unfreeze and floor are operations of which a batch has one: the entry that they write has what they set.
create or replace function wallet.legs_run_one (p_legs wallet.legs, p_kind text, p_request jsonb, p_until timestamptz,
                                                out legs wallet.legs, out trouble boolean, out last_at timestamptz)
  language plpgsql stable
as $$
declare
  v_wallets bigint[] := p_legs.wallets;
  v_amounts bigint[] := p_legs.amounts;
  v_holds bigint[] := p_legs.holds;
  v_balances bigint[];
  v_helds bigint[];
  v_floors bigint[];
  v_frozens boolean[];
  v_versions bigint[];
  v_entry record;
begin
  trouble := false;
  for i in 1 .. coalesce(cardinality(v_wallets), 0) loop
    select e.balance + v_amounts[i] as balance, coalesce(e.held, 0) + v_holds[i] as held, coalesce(e.floor, 0) as floor,
           coalesce(e.frozen, false) as frozen, e.version + 1 as version, e.at
    into strict v_entry
    from wallet.last_entry(v_wallets[i], p_until) e;
    trouble := trouble or wallet.is_trouble(v_entry.balance, v_entry.held, v_entry.floor, v_entry.frozen);
    last_at := greatest(last_at, v_entry.at);
    v_balances[i] := v_entry.balance;
    v_helds[i] := v_entry.held;
    v_floors[i] := case when p_kind = 'floor' then (p_request ->> 'floor')::bigint else v_entry.floor end;
    v_frozens[i] := case p_kind when 'freeze' then true when 'unfreeze' then false else v_entry.frozen end;
    v_versions[i] := v_entry.version;
  end loop;
  legs := row(p_legs.ords, v_wallets, v_amounts, v_holds, p_legs.mains, v_balances, v_helds, v_floors, v_frozens, v_versions)::wallet.legs;
end
$$;

-- The wallets' states after each leg if every leg is posted in order. p_kind and p_request: of the only operation; null: there are several. trouble: one would be short of funds, over the limit or
-- frozen. @system has no limit: what it may owe and own is bounded by what wallets may. last_at: the latest time of the wallets' last
-- entries, of those that are not after p_until. known: one of these keys has been decided; null for p_txn_ids: that is not asked.
create or replace function wallet.legs_run (p_legs wallet.legs, p_kind text, p_request jsonb, p_until timestamptz, p_txn_ids uuid[],
                                            out legs wallet.legs, out trouble boolean, out last_at timestamptz, out known boolean)
  language plpgsql stable
as $$
declare
  v_one record;
begin
  if p_kind is not null then
    v_one := wallet.legs_run_one(p_legs, p_kind, p_request, p_until);
    legs := v_one.legs;
    trouble := v_one.trouble;
    last_at := v_one.last_at;
    known := p_txn_ids is not null and exists (select from wallet.txn t where t.txn_id = p_txn_ids[1]);
    return;
  end if;
  select array_agg(r.balance), array_agg(r.held), array_agg(r.floor), array_agg(r.frozen), array_agg(r.version),
         coalesce(bool_or(wallet.is_trouble(r.balance, r.held, r.floor, r.frozen)), false), max(r.at),
         exists (select from unnest(p_txn_ids) k (txn_id) cross join lateral (select from wallet.txn t where t.txn_id = k.txn_id limit 1) t)
  into p_legs.balances, p_legs.helds, p_legs.floors, p_legs.frozens, p_legs.versions, trouble, last_at, known
  from (
    -- The last entry is read once for each wallet, at its first leg; so a sum from there on begins with it.
    select l.n, (sum(l.amount + coalesce(e.balance, 0)) over run)::bigint as balance,
           (sum(l.hold + coalesce(e.held, 0)) over run)::bigint as held, coalesce(max(e.floor) over run, 0) as floor,
           coalesce(bool_or(e.frozen) over run, false) as frozen, max(e.version) over run + row_number() over run as version, e.at
    from (select u.*, row_number() over (partition by u.wallet order by u.n) = 1 as first
          from unnest(p_legs.wallets, p_legs.amounts, p_legs.holds) with ordinality u (wallet, amount, hold, n)) l
    left join lateral wallet.last_entry(case when l.first then l.wallet end, p_until) e on true
    window run as (partition by l.wallet order by l.n rows unbounded preceding)
    order by l.n
  ) r;
  legs := p_legs;
end
$$;

-- Why one use of a hold or transaction cannot be, of which p_left is left for it; null: it can.
create or replace function wallet.use_fault (
  p_kind text, p_amount bigint, p_left bigint, p_total bigint, p_whole boolean, p_ended text, out refusal text, out sentence text)
  language plpgsql immutable
as $$
begin
  if p_ended is not null then
    refusal := 'hold-ended';
    sentence := format('the hold is %s', p_ended);
  elsif p_kind = 'refund' and (p_left = 0 or p_amount > p_left) then
    refusal := 'over-refunded';
    sentence := format('%s of %s are left to refund', p_left, p_total);
  elsif p_kind = 'refund' and p_whole and p_amount <> p_total then
    refusal := 'not-refundable';
    sentence := 'a transaction of many legs can only be refunded whole';
  elsif p_amount > p_left then
    refusal := 'over-captured';
    sentence := format('%s are left of the hold, %s were asked for', p_left, p_amount);
  end if;
end
$$;

-- Why a leg cannot be posted to a wallet in this state; null: it can. One expression, so that it is inlined.
create or replace function wallet.leg_refusal (
  p_kind text, p_amount bigint, p_hold bigint, p_balance bigint, p_held bigint, p_floor bigint, p_frozen boolean)
  returns text
  language sql immutable
as $$
  select case
    when p_frozen and p_kind not in ('void', 'expire', 'freeze', 'unfreeze', 'floor') then 'wallet-frozen'
    when p_amount < p_hold and p_balance - p_held + p_amount - p_hold < p_floor then 'insufficient-funds'
    when p_amount > 0 and p_balance + p_amount > 9007199254740991 and p_floor >= -9007199254740991 then 'balance-limit'
  end
$$;

create or replace function wallet.leg_sentence (p_refusal text, p_wallet bigint, p_available bigint, p_needed bigint)
  returns text
  language sql stable
as $$
  select case p_refusal
    when 'wallet-frozen' then format('the wallet of "%s" is frozen', wallet.owner_of(p_wallet))
    when 'insufficient-funds' then format('"%s" has %s available, %s are needed', wallet.owner_of(p_wallet), p_available, p_needed)
    when 'balance-limit' then format('"%s" would have more than 9007199254740991', wallet.owner_of(p_wallet))
  end
$$;

-- Each wallet's state before its first leg; slots: of each leg, the position of its wallet in the other arrays.
create or replace function wallet.legs_before (p_legs wallet.legs, out slots integer[], out balances bigint[], out helds bigint[],
                                               out floors bigint[], out frozens boolean[])
  language plpgsql stable
as $$
begin
  slots := array(select s.slot from (select l.ord, dense_rank() over (order by l.wallet) as slot
                                     from unnest(p_legs.wallets) with ordinality l (wallet, ord)) s order by s.ord);
  select array_agg(s.balance - s.amount order by s.wallet), array_agg(s.held - s.hold order by s.wallet), array_agg(s.floor order by s.wallet),
         array_agg(s.frozen order by s.wallet)
  into balances, helds, floors, frozens
  from (select distinct on (l.wallet) l.*
        from unnest(p_legs.wallets, p_legs.amounts, p_legs.holds, p_legs.balances, p_legs.helds, p_legs.floors, p_legs.frozens)
          with ordinality l (wallet, amount, hold, balance, held, floor, frozen, n) order by l.wallet, l.n) s;
end
$$;

-- One after the other, as if each had come alone. An operation is refused for what it refers to, or for the first of its legs
-- that cannot be. amounts: as assumed for the legs; those left open by the caller become what is left when their turn comes.
create or replace function wallet.batch_decide (
  p_kinds text[], p_asked bigint[], p_facts wallet.facts, p_legs wallet.legs, p_sentences text[],
  inout amounts bigint[], inout refusals text[], out sentences text[])
  language plpgsql stable
as $$
declare
  -- Plain variables: PL/pgSQL expands these, not the fields of a composite, into arrays whose elements are read in constant time.
  v_ords integer[] := p_legs.ords;
  v_amounts bigint[] := p_legs.amounts;
  v_holds bigint[] := p_legs.holds;
  v_refs integer[] := p_facts.slots;
  v_left bigint[] := p_facts.lefts;
  v_ended text[] := '{}'::text[];
  v_slots integer[]; -- see wallet.legs_before
  v_balance bigint[];
  v_held bigint[];
  v_floor bigint[];
  v_frozen boolean[];
  v_first integer; -- the first leg of an operation, and the one after its last
  v_leg integer := 1;
  v_slot integer;
  v_ord integer;
  v_ref integer;
  v_amount bigint;
  v_fault record;
begin
  sentences := p_sentences;
  select b.* into v_slots, v_balance, v_held, v_floor, v_frozen from wallet.legs_before(p_legs) b;
  while v_leg <= cardinality(v_ords) loop
    v_ord := v_ords[v_leg];
    v_ref := v_refs[v_ord];
    v_first := v_leg;
    if v_ref is not null then
      v_amount := case when p_kinds[v_ord] in ('void', 'expire') then v_left[v_ref] else coalesce(p_asked[v_ord], v_left[v_ref]) end;
      v_fault := wallet.use_fault(p_kinds[v_ord], v_amount, v_left[v_ref], p_facts.totals[v_ord], p_facts.wholes[v_ord], v_ended[v_ref]);
      refusals[v_ord] := v_fault.refusal;
      sentences[v_ord] := v_fault.sentence;
    end if;
    while v_ords[v_leg] = v_ord loop -- null after the last one
      v_slot := v_slots[v_leg];
      if refusals[v_ord] is null and v_ref is not null and v_amount <> amounts[v_ord] then
        v_amounts[v_leg] := sign(v_amounts[v_leg])::bigint * v_amount;
        v_holds[v_leg] := sign(v_holds[v_leg])::bigint * v_amount;
      end if;
      if refusals[v_ord] is null then
        refusals[v_ord] := wallet.leg_refusal(p_kinds[v_ord], v_amounts[v_leg], v_holds[v_leg], v_balance[v_slot], v_held[v_slot], v_floor[v_slot],
                                              v_frozen[v_slot]);
        sentences[v_ord] := case when refusals[v_ord] is not null then wallet.leg_sentence(refusals[v_ord], p_legs.wallets[v_leg],
          v_balance[v_slot] - v_held[v_slot] - v_floor[v_slot], v_holds[v_leg] - v_amounts[v_leg]) end;
      end if;
      v_leg := v_leg + 1;
    end loop;
    if v_ref is not null then
      amounts[v_ord] := v_amount;
    end if;
    continue when refusals[v_ord] is not null;
    for i in v_first .. v_leg - 1 loop
      v_balance[v_slots[i]] := v_balance[v_slots[i]] + v_amounts[i];
      v_held[v_slots[i]] := v_held[v_slots[i]] + v_holds[i];
    end loop;
    if p_kinds[v_ord] in ('capture', 'refund') then
      v_left[v_ref] := v_left[v_ref] - v_amount;
    end if;
    if p_kinds[v_ord] in ('void', 'expire') or p_kinds[v_ord] = 'capture' and v_left[v_ref] = 0 then
      v_ended[v_ref] := case p_kinds[v_ord] when 'void' then 'voided' when 'expire' then 'expired' else 'captured' end;
    end if;
  end loop;
end
$$;

-- Decides a batch whose wallets are locked; see wallet.post_lock for p_systems, p_stripes and p_busy. p_legs: of the operations that were not
-- refused before. p_asked: the amounts as they were asked for. Returns the amounts, the refusals, what the batch does if nothing more is
-- refused, and its time. is_revised: the amounts or refusals are not those that legs were computed with.
create or replace function wallet.batch_judge (
  p_batch wallet.batch, p_legs wallet.legs, p_asked bigint[], p_systems bigint[], p_stripes bigint[], p_busy bigint[], p_now timestamptz,
  inout refusals text[], inout sentences text[], out amounts bigint[], out legs wallet.legs, out lefts bigint[], out at timestamptz,
  out is_revised boolean)
  language plpgsql
as $$
declare
  v_until timestamptz := p_now + wallet.clock_skew();
  v_refers boolean := p_batch.kinds && array['capture', 'void', 'expire', 'refund'];
  v_follows boolean := v_refers or p_batch.kinds && array['multi', 'freeze', 'unfreeze', 'floor']; -- see wallet.batch_amounts
  v_changed boolean := v_follows or coalesce(cardinality(p_busy), 0) > 0;
  v_kind text := case when cardinality(p_batch.kinds) = 1 then p_batch.kinds[1] end;
  v_facts wallet.facts;
  v_run record;
  v_ask record;
begin
  if not v_changed then -- nearly always
    v_run := wallet.legs_run(wallet.legs_striped(p_legs, p_systems, p_stripes), v_kind, p_batch.requests[1], v_until, p_batch.txn_ids);
    v_changed := v_run.known;
  end if;
  if v_changed then
    v_ask := wallet.refusals_under_lock(p_batch.txn_ids, p_legs, p_busy, refusals, sentences);
    refusals := v_ask.refusals;
    sentences := v_ask.sentences;
    if v_refers then
      v_facts := wallet.batch_facts(p_batch, refusals, p_now);
      refusals := array(select coalesce(u.r, u.f) from unnest(refusals, v_facts.refusals) with ordinality u (r, f, n) order by n);
      sentences := array(select coalesce(u.f, u.s) from unnest(sentences, v_facts.sentences) with ordinality u (s, f, n) order by n);
    end if;
    if v_follows then
      p_batch.amounts := wallet.batch_amounts(p_batch, v_facts.lefts);
    end if;
    -- The legs anew: what those that are refused would have brought must not pay for others.
    p_legs := wallet.legs_striped(wallet.batch_legs(p_batch, refusals), p_systems, p_stripes);
    v_run := wallet.legs_run(p_legs, v_kind, p_batch.requests[1], v_until, null);
  end if;
  amounts := p_batch.amounts;
  legs := v_run.legs;
  lefts := v_facts.lefts;
  at := greatest(p_now, v_run.last_at);
  is_revised := false;
  if v_run.trouble or v_facts.slots is not null then
    v_ask := wallet.batch_decide(p_batch.kinds, p_asked, v_facts, legs, sentences, amounts, refusals);
    is_revised := v_ask.refusals is distinct from refusals or v_ask.amounts is distinct from amounts;
    amounts := v_ask.amounts;
    refusals := v_ask.refusals;
    sentences := v_ask.sentences;
  end if;
end
$$;
