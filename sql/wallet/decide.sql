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

-- The wallets' states after each leg if every leg is posted in order. trouble: one would be short of funds, over the limit or frozen. @system
-- has no limit: what it may owe and own is bounded by what wallets may. last_at: the latest time of the wallets' last
-- entries, of those that are not after p_until. p_single: the legs of one operation, which names each wallet once. known: one of
-- these keys has been decided; null for p_txn_ids: that is not asked.
create or replace function wallet.legs_run (p_legs wallet.legs, p_floor bigint, p_frozen boolean, p_until timestamptz, p_single boolean,
                                            p_txn_ids uuid[], out legs wallet.legs, out trouble boolean, out last_at timestamptz,
                                            out known boolean)
  language plpgsql stable
as $$
declare
  v_legs wallet.legs := p_legs;
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
  if p_single then -- aggregates would cost more than what they aggregate
    trouble := false;
    known := p_txn_ids is not null and exists (select from wallet.txn t where t.txn_id = p_txn_ids[1]);
    for i in 1 .. coalesce(cardinality(v_wallets), 0) loop
      select e.balance + v_amounts[i] as balance, coalesce(e.held, 0) + v_holds[i] as held, coalesce(e.floor, 0) as floor,
             coalesce(e.frozen, false) as frozen, e.version + 1 as version, (select t.at from wallet.txn t where t.id = e.txn) as at
      into strict v_entry
      from wallet.entry e where e.wallet_id = v_wallets[i] order by e.version desc limit 1;
      trouble := trouble or wallet.is_trouble(v_entry.balance, v_entry.held, v_entry.floor, v_entry.frozen);
      last_at := greatest(last_at, case when v_entry.at <= p_until then v_entry.at end);
      v_balances[i] := v_entry.balance;
      v_helds[i] := v_entry.held;
      v_floors[i] := coalesce(p_floor, v_entry.floor);
      v_frozens[i] := coalesce(p_frozen, v_entry.frozen);
      v_versions[i] := v_entry.version;
    end loop;
    v_legs.balances := v_balances;
    v_legs.helds := v_helds;
    v_legs.floors := v_floors;
    v_legs.frozens := v_frozens;
    v_legs.versions := v_versions;
    legs := v_legs;
    return;
  end if;
  select array_agg(r.balance), array_agg(r.held), array_agg(coalesce(p_floor, r.floor)), array_agg(coalesce(p_frozen, r.frozen)), array_agg(r.version),
         coalesce(bool_or(wallet.is_trouble(r.balance, r.held, r.floor, r.frozen)), false),
         max(r.at) filter (where r.at <= p_until),
         exists (select from unnest(p_txn_ids) k (txn_id) cross join lateral (select from wallet.txn t where t.txn_id = k.txn_id limit 1) t)
  into v_legs.balances, v_legs.helds, v_legs.floors, v_legs.frozens, v_legs.versions, trouble, last_at, known
  from (
    -- The last entry is read once for each wallet, at its first leg; so a sum from there on begins with it.
    select l.n, (sum(l.amount + coalesce(e.balance, 0)) over run)::bigint as balance,
           (sum(l.hold + coalesce(e.held, 0)) over run)::bigint as held, max(e.floor) over run as floor,
           bool_or(e.frozen) over run as frozen, max(e.version) over run + row_number() over run as version, e.at
    from (select u.*, row_number() over (partition by u.wallet order by u.n) = 1 as first
          from unnest(p_legs.wallets, p_legs.amounts, p_legs.holds) with ordinality u (wallet, amount, hold, n)) l
    left join lateral (
      select e.balance, coalesce(e.held, 0) as held, coalesce(e.floor, 0) as floor, coalesce(e.frozen, false) as frozen, e.version,
             (select t.at from wallet.txn t where t.id = e.txn) as at
      from wallet.entry e where e.wallet_id = l.wallet and l.first order by e.version desc limit 1) e on true
    window run as (partition by l.wallet order by l.n rows unbounded preceding)
    order by l.n
  ) r;
  legs := v_legs;
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
  -- Plain variables: PL/pgSQL expands only these into arrays whose elements are read in constant time.
  v_ords integer[] := p_legs.ords;
  v_wallets bigint[] := p_legs.wallets;
  v_amounts bigint[] := p_legs.amounts;
  v_holds bigint[] := p_legs.holds;
  v_refs integer[] := p_facts.slots;
  v_left bigint[] := p_facts.lefts;
  v_totals bigint[] := p_facts.totals;
  v_wholes boolean[] := p_facts.wholes;
  v_ended text[] := '{}'::text[];
  v_slots integer[]; -- of each leg: the position of its wallet in the arrays below
  v_balance bigint[];
  v_held bigint[];
  v_floor bigint[];
  v_frozen boolean[];
  v_count integer := cardinality(v_ords);
  v_leg integer := 1;
  v_first integer;
  v_ord integer;
  v_slot integer;
  v_ref integer;
  v_amount bigint;
  v_kind text;
begin
  sentences := p_sentences;
  v_slots := array(select s.slot from (select l.ord, dense_rank() over (order by l.wallet) as slot
                                       from unnest(v_wallets) with ordinality l (wallet, ord)) s order by s.ord);
  -- Each wallet's state before its first leg.
  select array_agg(s.balance - s.amount order by s.wallet), array_agg(s.held - s.hold order by s.wallet), array_agg(s.floor order by s.wallet),
         array_agg(s.frozen order by s.wallet)
  into v_balance, v_held, v_floor, v_frozen
  from (select distinct on (l.wallet) l.* from unnest(v_wallets, v_amounts, v_holds, p_legs.balances, p_legs.helds, p_legs.floors, p_legs.frozens)
          with ordinality l (wallet, amount, hold, balance, held, floor, frozen, n) order by l.wallet, l.n) s;

  while v_leg <= v_count loop
    v_ord := v_ords[v_leg];
    v_kind := p_kinds[v_ord];
    v_first := v_leg;
    v_ref := v_refs[v_ord];
    if v_ref is not null then
      v_amount := case when v_kind in ('void', 'expire') then v_left[v_ref] else coalesce(p_asked[v_ord], v_left[v_ref]) end;
      if v_ended[v_ref] is not null then
        refusals[v_ord] := 'hold-ended';
        sentences[v_ord] := format('the hold is %s', v_ended[v_ref]);
      elsif v_kind = 'refund' and (v_left[v_ref] = 0 or v_amount > v_left[v_ref]) then
        refusals[v_ord] := 'over-refunded';
        sentences[v_ord] := format('%s of %s are left to refund', v_left[v_ref], v_totals[v_ord]);
      elsif v_kind = 'refund' and v_wholes[v_ord] and v_amount <> v_totals[v_ord] then
        refusals[v_ord] := 'not-refundable';
        sentences[v_ord] := 'a transaction of many legs can only be refunded whole';
      elsif v_amount > v_left[v_ref] then
        refusals[v_ord] := 'over-captured';
        sentences[v_ord] := format('%s are left of the hold, %s were asked for', v_left[v_ref], v_amount);
      elsif v_amount <> amounts[v_ord] then
        for i in v_first .. v_count loop
          exit when v_ords[i] <> v_ord;
          v_amounts[i] := sign(v_amounts[i])::bigint * v_amount;
          v_holds[i] := sign(v_holds[i])::bigint * v_amount;
        end loop;
      end if;
      amounts[v_ord] := v_amount;
    end if;
    while v_leg <= v_count and v_ords[v_leg] = v_ord loop
      v_slot := v_slots[v_leg];
      if refusals[v_ord] is not null then
        null;
      elsif v_frozen[v_slot] and v_kind not in ('void', 'expire', 'freeze', 'unfreeze', 'floor') then
        refusals[v_ord] := 'wallet-frozen';
        sentences[v_ord] := format('the wallet of "%s" is frozen', wallet.owner_of(v_wallets[v_leg]));
      elsif v_amounts[v_leg] < v_holds[v_leg]
            and v_balance[v_slot] - v_held[v_slot] + v_amounts[v_leg] - v_holds[v_leg] < v_floor[v_slot] then
        refusals[v_ord] := 'insufficient-funds';
        sentences[v_ord] := format('"%s" has %s available, %s are needed', wallet.owner_of(v_wallets[v_leg]),
          v_balance[v_slot] - v_held[v_slot] - v_floor[v_slot], v_holds[v_leg] - v_amounts[v_leg]);
      elsif v_amounts[v_leg] > 0 and v_balance[v_slot] + v_amounts[v_leg] > 9007199254740991 and v_floor[v_slot] >= -9007199254740991 then
        refusals[v_ord] := 'balance-limit';
        sentences[v_ord] := format('"%s" would have more than 9007199254740991', wallet.owner_of(v_wallets[v_leg]));
      end if;
      v_leg := v_leg + 1;
    end loop;
    continue when refusals[v_ord] is not null;
    for i in v_first .. v_leg - 1 loop
      v_balance[v_slots[i]] := v_balance[v_slots[i]] + v_amounts[i];
      v_held[v_slots[i]] := v_held[v_slots[i]] + v_holds[i];
    end loop;
    if v_ref is not null then
      if v_kind in ('capture', 'refund') then
        v_left[v_ref] := v_left[v_ref] - v_amount;
      end if;
      if v_kind in ('void', 'expire') or v_kind = 'capture' and v_left[v_ref] = 0 then
        v_ended[v_ref] := case v_kind when 'void' then 'voided' when 'expire' then 'expired' else 'captured' end;
      end if;
    end if;
  end loop;
end
$$;
