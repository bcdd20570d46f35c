-- decide.sql - may it be done? Called under the locks, so what it reads stays true until the end of the transaction.

-- Refusals that are kept under their key; the others were never decided.
create or replace function wallet.is_kept (p_refusal text)
  returns boolean
  language sql immutable
as $$ select p_refusal in ('insufficient-funds', 'balance-limit', 'wallet-frozen', 'hold-ended', 'over-captured', 'over-refunded') $$;

-- What an operation asks of the hold it names: how much moves, or why not.
create or replace function wallet.hold_ask (p_kind text, p_asked bigint, p_hold wallet.hold, p_now timestamptz,
                                            out amount bigint, out refusal text, out sentence text)
  language plpgsql stable
as $$
declare
  v_left bigint := p_hold.amount - p_hold.captured;
begin
  amount := coalesce(p_asked, v_left);
  if p_hold.status <> 'OPEN' then
    refusal := 'hold-ended';
    sentence := format('the hold is %s', lower(p_hold.status));
  elsif p_kind = 'capture' and p_hold.expires_at <= p_now then
    refusal := 'hold-ended';
    sentence := 'the hold is expired';
  elsif p_kind = 'expire' and (p_hold.expires_at > p_now) is not false then
    refusal := 'hold-not-due';
    sentence := 'the hold has not expired yet';
  elsif amount > v_left then
    refusal := 'over-captured';
    sentence := format('%s are left of the hold, %s were asked for', v_left, amount);
  end if;
end
$$;

-- What a refund asks of the transaction it names.
create or replace function wallet.refund_ask (p_asked bigint, p_txn wallet.txn,
                                              out amount bigint, out refusal text, out sentence text)
  language plpgsql stable
as $$
declare
  v_left bigint := p_txn.amount - coalesce((select sum(t.amount) from wallet.txn t
                                            where t.ref = p_txn.id and t.kind = 'refund' and t.refusal is null), 0);
begin
  amount := coalesce(p_asked, v_left);
  if p_txn.kind not in ('topup', 'spend', 'transfer', 'multi', 'capture') or p_txn.refusal is not null then
    refusal := 'not-refundable';
    sentence := format('a %s cannot be refunded', case when p_txn.refusal is not null then 'refused ' else '' end || p_txn.kind);
  elsif v_left = 0 or amount > v_left then
    refusal := 'over-refunded';
    sentence := format('%s of %s are left to refund', v_left, p_txn.amount);
  elsif p_txn.other_id is null and amount <> p_txn.amount then
    refusal := 'not-refundable';
    sentence := 'a transaction of many legs can only be refunded whole';
  end if;
end
$$;

-- The amounts of operations that refer to something, or why they cannot be.
create or replace function wallet.batch_ask (
  p_batch wallet.batch, p_now timestamptz, p_sentences text[], inout amounts bigint[], inout refusals text[],
  out sentences text[])
  language plpgsql stable
as $$
declare
  v_row record;
  v_ask record;
begin
  sentences := p_sentences;
  for v_row in
    select u.ord, u.kind, u.asked, u.request, t.t, h.h
    from unnest(p_batch.kinds, p_batch.refs, p_batch.requests, amounts, refusals) with ordinality u (kind, ref, request, asked, refusal, ord)
    left join lateral (select t from wallet.txn t where t.id = u.ref limit 1) t on true
    left join lateral (select h from wallet.hold h where h.id = u.ref limit 1) h on true
    where u.refusal is null and u.kind not in ('topup', 'spend', 'transfer', 'hold')
  loop
    if v_row.kind = 'multi' then
      amounts[v_row.ord] := (select sum(l.amount) filter (where l.amount > 0) from wallet.legs_named(v_row.request) l);
      continue;
    elsif v_row.kind in ('freeze', 'unfreeze', 'floor') then
      amounts[v_row.ord] := 0;
      continue;
    elsif v_row.kind = 'refund' then
      v_ask := wallet.refund_ask(v_row.asked, v_row.t);
    else
      v_ask := wallet.hold_ask(v_row.kind, v_row.asked, v_row.h, p_now);
    end if;
    amounts[v_row.ord] := v_ask.amount;
    refusals[v_row.ord] := v_ask.refusal;
    sentences[v_row.ord] := v_ask.sentence;
  end loop;
end
$$;

-- Is there a wallet that would be short, over the limit or frozen if every leg were posted in order?
create or replace function wallet.legs_trouble (p_legs wallet.legs)
  returns boolean
  language plpgsql stable
as $$
begin
  return (select coalesce(bool_or(r.frozen or r.least < r.floor or r.most > 9007199254740991), false)
  from (
    select s.frozen, s.floor, s.balance - s.held + sum(l.amount - l.hold) over run as least, s.balance + sum(l.amount) over run as most
    from unnest(p_legs.ords, p_legs.wallets, p_legs.amounts, p_legs.holds) l (ord, wallet, amount, hold)
    cross join lateral (select s.* from wallet.state s where s.id = l.wallet limit 1) s
    window run as (partition by l.wallet order by l.ord)
  ) r);
end
$$;

-- One after the other, as if each had come alone. An operation is refused for the first of its legs that cannot be.
create or replace function wallet.legs_decide (
  p_kinds text[], p_legs wallet.legs, p_sentences text[], inout refusals text[], out sentences text[])
  language plpgsql stable
as $$
declare
  -- Variables of their own, because only these are arrays that are quick to look into.
  v_ords integer[] := p_legs.ords;
  v_wallets bigint[] := p_legs.wallets;
  v_amounts bigint[] := p_legs.amounts;
  v_holds bigint[] := p_legs.holds;
  v_slots integer[]; -- of each leg: the place of its wallet in the arrays below
  v_balance bigint[];
  v_held bigint[];
  v_floor bigint[];
  v_frozen boolean[];
  v_leg integer := 1;
  v_first integer;
  v_ord integer;
  v_slot integer;
begin
  sentences := p_sentences;
  v_slots := array(select s.slot from (select l.ord, dense_rank() over (order by l.wallet) as slot
                                       from unnest(v_wallets) with ordinality l (wallet, ord)) s order by s.ord);
  select array_agg(s.balance order by s.id), array_agg(s.held order by s.id), array_agg(s.floor order by s.id),
         array_agg(s.frozen order by s.id)
  into v_balance, v_held, v_floor, v_frozen
  from wallet.state s where s.id = any (v_wallets);

  while v_leg <= cardinality(v_ords) loop
    v_ord := v_ords[v_leg];
    v_first := v_leg;
    while v_leg <= cardinality(v_ords) and v_ords[v_leg] = v_ord loop
      v_slot := v_slots[v_leg];
      if refusals[v_ord] is not null then
        null;
      elsif v_frozen[v_slot] and p_kinds[v_ord] not in ('void', 'expire', 'freeze', 'unfreeze', 'floor') then
        refusals[v_ord] := 'wallet-frozen';
        sentences[v_ord] := format('the wallet of "%s" is frozen', wallet.owner_of(v_wallets[v_leg]));
      elsif v_amounts[v_leg] < v_holds[v_leg]
            and v_balance[v_slot] - v_held[v_slot] + v_amounts[v_leg] - v_holds[v_leg] < v_floor[v_slot] then
        refusals[v_ord] := 'insufficient-funds';
        sentences[v_ord] := format('"%s" has %s available, %s are needed', wallet.owner_of(v_wallets[v_leg]),
          v_balance[v_slot] - v_held[v_slot] - v_floor[v_slot], v_holds[v_leg] - v_amounts[v_leg]);
      elsif v_amounts[v_leg] > 0 and v_balance[v_slot] + v_amounts[v_leg] > 9007199254740991 then
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
  end loop;
end
$$;
