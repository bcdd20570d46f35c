-- verify.sql - checks the ledger for consistency. Each step is one short statement over a range, so postings go on meanwhile. A
-- finding is a row: the step, the inconsistent row, and what is wrong with it.

-- A block whose hash is not that of its seal: which of its rows is it?
create or replace function wallet.verify_block (p_seal wallet.seal, p_after bigint)
  returns table (what text, which text, sentence text)
  language sql stable
as $$
  with kept as (
    select substr(p_seal.leaves, 1 + 8 * n, 8) as leaf, n from generate_series(0, length(p_seal.leaves) / 8 - 1) n
  ), found as (
    select l.*, substr(l.leaf, 1, 8) as short, row_number() over (order by l.txn, l.kind desc, l.id) - 1 as n from wallet.leaves(p_after, p_seal.upto) l
  ), odd as (
    select f.* from found f where not exists (select from kept k where k.leaf = f.short)
  )
  select o.kind,
         case o.kind when 'txn' then format('txn %s', o.txn) when 'wallet' then format('wallet %s', o.id)
           else (select format('entry of wallet %s, version %s, txn %s', e.wallet_id, e.version, e.txn) from wallet.entry e where e.txn = o.txn and e.wallet_id = o.id) end,
         'is not as it was sealed'
  from odd o
  union all
  -- It may as well be the seal that was changed.
  select 'seal', format('seal %s', p_seal.id), format('does not fit its rows: %s were sealed, %s are there, %s of them as sealed',
    p_seal.rows, (select count(*) from found), (select count(*) from found) - (select count(*) from odd))
$$;

-- Seals p_first to p_last against their rows.
create or replace function wallet.verify_seals (p_first bigint, p_last bigint)
  returns table (what text, which text, sentence text)
  language plpgsql stable security definer set search_path = wallet, pawl, pg_temp
  set plan = index
as $$
declare
  v_seal wallet.seal;
  v_before wallet.seal;
  v_block record;
begin
  -- The one before, or if that is missing the last that is there.
  select * into v_before from wallet.seal s where s.id < p_first order by s.id desc limit 1;
  for v_seal in select * from wallet.seal s where s.id between p_first and p_last order by s.id loop
    if v_seal.id <> coalesce(v_before.id, 0) + 1 then
      return query select 'seal', format('seal %s', coalesce(v_before.id, 0) + 1), 'is missing';
    end if;
    v_block := wallet.block(coalesce(v_before.upto, -1), v_seal.upto, v_seal.sealed_at, coalesce(v_before.hash, ''));
    if v_block.hash <> v_seal.hash or v_block.leaves <> v_seal.leaves or v_block.rows <> v_seal.rows then
      return query select * from wallet.verify_block(v_seal, coalesce(v_before.upto, -1));
      if v_block.leaves = v_seal.leaves then
        v_seal.hash := v_block.hash; -- so that a changed hash is not found a second time in the block after it
      end if;
    end if;
    v_before := v_seal;
  end loop;
end
$$;

-- Transactions with numbers in (p_after, p_upto]: each has its legs, they sum to zero and are what it says; each entry follows
-- from the one before it.
create or replace function wallet.verify_txns (p_after bigint, p_upto bigint)
  returns table (what text, which text, sentence text)
  language sql stable security definer set search_path = wallet, pawl, pg_temp
  set plan = index
as $$
  select v.what, v.which, v.sentence
  from (
    select 'txn' as what, format('txn %s', coalesce(t.id, l.txn)) as which, case
        when t.id is null then 'has entries, but is not there'
        when t.refusal is not null and l.legs is not null then 'was refused, but has entries'
        when t.refusal is not null then null
        when t.kind in ('topup', 'spend', 'transfer', 'capture', 'refund', 'multi') and (coalesce(l.legs, 0) < 2 or t.kind not in ('multi', 'refund') and l.legs <> 2)
             or t.kind not in ('topup', 'spend', 'transfer', 'capture', 'refund', 'multi') and coalesce(l.legs, 0) <> 1 then
          format('has %s entries', coalesce(l.legs, 0))
        when not l.zero then 'has entries that do not sum to zero'
        when t.kind in ('topup', 'spend', 'transfer', 'capture') and l.moved <> t.amount then format('says %s, its entries say %s', t.amount, l.moved)
      end as sentence
    from (select t.* from wallet.txn t where t.id > p_after and t.id <= p_upto) t
    full join (
      select a.txn, sum(a.legs) as legs, bool_and(a.total = 0) as zero, sum(a.moved) as moved
      from (select e.txn, w.asset_id, count(*) as legs, sum(e.amount) as total, sum(greatest(e.amount, 0)) as moved
            from wallet.entry e join wallet.wallet w on w.id = e.wallet_id
            where e.txn > p_after and e.txn <= p_upto group by e.txn, w.asset_id) a
      group by a.txn) l on l.txn = t.id
    union all
    select 'entry', format('entry of wallet %s, version %s, txn %s', e.wallet_id, e.version, e.txn), case
        when t.id is null then 'has no transaction'
        when e.version > 0 and b.version is null then format('follows on version %s, which is not there', e.version - 1)
        when e.version > 0 and b.txn >= e.txn then 'is older than the one before it'
        when e.balance <> coalesce(b.balance, 0) + e.amount then format('has balance %s, but %s and %s make %s', e.balance, coalesce(b.balance, 0), e.amount, coalesce(b.balance, 0) + e.amount)
        when coalesce(e.held, 0) < 0 then 'has less than nothing held'
        when coalesce(e.held, 0) <> coalesce(b.held, 0) + d.held then format('has %s held, but %s and %s make %s', coalesce(e.held, 0), coalesce(b.held, 0), d.held, coalesce(b.held, 0) + d.held)
        when coalesce(e.floor, 0) <> case t.kind when 'open' then coalesce(e.floor, 0) when 'floor' then (t.request ->> 'floor')::bigint else coalesce(b.floor, 0) end then
          format('has floor %s, which nothing set', coalesce(e.floor, 0))
        when coalesce(e.frozen, false) <> case t.kind when 'freeze' then true when 'unfreeze' then false else coalesce(b.frozen, false) end then
          'is frozen or not, which nothing set'
        when b.frozen and t.kind not in ('void', 'expire', 'freeze', 'unfreeze', 'floor') then 'changes a frozen wallet'
        when e.amount < d.held and e.balance - coalesce(e.held, 0) < coalesce(e.floor, 0) then
          format('leaves %s available', e.balance - coalesce(e.held, 0) - coalesce(e.floor, 0))
        when e.amount > 0 and e.balance > 9007199254740991 and coalesce(e.floor, 0) >= -9007199254740991 then 'has more than 9007199254740991'
      end
    from wallet.entry e
    left join wallet.entry b on b.wallet_id = e.wallet_id and b.version = e.version - 1
    left join wallet.txn t on t.id = e.txn
    -- How much more is held by what the transaction did to this wallet.
    cross join lateral (
      select case when t.wallet_id is distinct from e.wallet_id then 0 when t.kind = 'hold' then t.amount
                  when t.kind in ('capture', 'void', 'expire') then -t.amount else 0 end as held) d
    where e.txn > p_after and e.txn <= p_upto
  ) v
  where v.sentence is not null
$$;

-- Wallets with ids in (p_after, p_upto]: each has entries, and what is held is what its holds say.
create or replace function wallet.verify_wallets (p_after bigint, p_upto bigint)
  returns table (what text, which text, sentence text)
  language sql stable security definer set search_path = wallet, pawl, pg_temp
  set plan = index
as $$
  select 'wallet', format('wallet %s', v.id), v.sentence
  from (
    select w.id, case
        when e.version is null then 'has no entry'
        when coalesce(e.held, 0) <> coalesce((select sum(h.amount - h.captured) from wallet.holds h where h.wallet_id = w.id and h.status = 'OPEN'), 0) then
          format('holds %s, its open holds say otherwise', coalesce(e.held, 0))
      end as sentence
    from (select w.* from wallet.wallet w where w.id > p_after and w.id <= p_upto) w
    left join lateral (select e.* from wallet.entry e where e.wallet_id = w.id order by e.version desc limit 1) e on true
  ) v
  where v.sentence is not null
$$;

-- Holds with numbers in (p_after, p_upto]: what they are follows from the transactions about them.
create or replace function wallet.verify_holds (p_after bigint, p_upto bigint)
  returns table (what text, which text, sentence text)
  language sql stable security definer set search_path = wallet, pawl, pg_temp
  set plan = index
as $$
  select 'hold', format('hold %s', v.id), v.sentence
  from (
    select coalesce(h.id, t.id) as id, case
        when t.id is null or t.kind <> 'hold' then 'has no transaction'
        when h.id is null then 'is not there, its transaction is'
        when h.wallet_id <> t.wallet_id then 'is of another wallet than its transaction'
        when h.amount <> t.amount then format('is of %s, its transaction says %s', h.amount, t.amount)
        when h.expires_at is distinct from t.at + (t.request ->> 'expires_in_s')::bigint * interval '1 s' then 'expires at another time than its transaction says'
        when c.captured > t.amount then format('has %s captured of %s', c.captured, t.amount)
        when h.status <> case when c.expired then 'EXPIRED' when c.voided then 'VOIDED' when c.captured = t.amount then 'CAPTURED' else 'OPEN' end then
          format('is %s, its transactions say otherwise', h.status)
      end as sentence
    from (select h.* from wallet.hold h where h.id > p_after and h.id <= p_upto) h
    full join (select t.* from wallet.txn t where t.id > p_after and t.id <= p_upto and t.kind = 'hold' and t.refusal is null) t on t.id = h.id
    cross join lateral (
      select coalesce(sum(r.amount) filter (where r.kind = 'capture'), 0) as captured, coalesce(bool_or(r.kind = 'void'), false) as voided,
             coalesce(bool_or(r.kind = 'expire'), false) as expired
      from wallet.txn r where r.ref = coalesce(h.id, t.id) and r.refusal is null) c
  ) v
  where v.sentence is not null
$$;

-- Each asset as a whole.
create or replace function wallet.verify_assets ()
  returns table (what text, which text, sentence text)
  language sql stable security definer set search_path = wallet, pawl, pg_temp
as $$
  select 'asset', format('asset %s', a.code), format('has balances that sum to %s', sum(s.balance))
  from wallet.state s join wallet.wallet w on w.id = s.id join wallet.asset a on a.id = w.asset_id
  group by a.code having sum(s.balance) <> 0
$$;

-- What an earlier verification saw must still be there: the end of a chain could be cut off without a trace in the rest.
create or replace function wallet.verify_head ()
  returns table (what text, which text, sentence text)
  language sql stable security definer set search_path = wallet, pawl, pg_temp
as $$
  select 'seal', format('seal %s', v.seal), case when s.id is null then 'was there at the last verification and is missing'
                                                 else 'is another one than at the last verification' end
  from wallet.verified v left join wallet.seal s on s.id = v.seal
  where s.hash is distinct from v.hash
$$;

-- What there is to do, in pieces of about 20,000 rows, a fraction of a second each. Only the sum of all balances is one piece, because it must
-- be of one snapshot. work: rows to read, to report progress.
-- Incremental: only what was sealed or posted since the last verification without a finding; wallets and holds are always
-- looked at. If the chain does not begin with what was verified then, everything is.
create or replace function wallet.verify_plan (p_incremental boolean default false)
  returns table (step text, low bigint, high bigint, work bigint)
  language plpgsql stable security definer set search_path = wallet, pawl, pg_temp
as $$
#variable_conflict use_column
declare
  v_from bigint := 0;
  v_after bigint := -1;
  v_sealed bigint := coalesce((select max(s.upto) from wallet.seal s), -1);
begin
  if p_incremental then
    select s.id, s.upto into v_from, v_after from wallet.verified v join wallet.seal s on s.id = v.seal and s.hash = v.hash;
    v_from := coalesce(v_from, 0);
    v_after := coalesce(v_after, -1);
  end if;
  return query
    with part as (
      select min(s.id) as first, max(s.id) as last, max(s.upto) as upto, sum(s.rows)::bigint as rows
      from wallet.seal s where s.id > v_from group by (s.id - 1) / 20
    ), range as (
      select coalesce(lag(p.upto) over (order by p.last), v_after) as after, p.* from part p
    ), tail as (
      select coalesce(lag(b.upto) over (order by b.upto), v_sealed) as after, b.upto
      from (select r.id from (select t.id, row_number() over (order by t.id) as n from wallet.txn t where t.id > v_sealed) r where r.n % 20000 = 0
            union all select 9223372036854775807) b (upto)
    ), held as ( -- the number of a hold is that of its transaction
      select coalesce(lag(b.upto) over (order by b.upto), -1) as after, b.upto
      from (select max(s.upto) from wallet.seal s group by (s.id - 1) / 20 union all select t.upto from tail t) b (upto)
    )
    select 'seals', r.first, r.last, r.rows from range r
    union all select 'txns', r.after, r.upto, r.rows from range r
    union all select 'tail', t.after, t.upto, (select count(*) from wallet.txn x where x.id > t.after and x.id <= t.upto) from tail t
    union all select 'holds', h.after, h.upto, (select count(*) from wallet.hold x where x.id > h.after and x.id <= h.upto) from held h
    union all select 'wallets', n - 1, n + 19999, (select count(*) from wallet.wallet w where w.id between n and n + 19999)
              from generate_series(1::bigint, coalesce((select max(w.id) from wallet.wallet w), 0), 20000) n
    union all select 'head', 0::bigint, 0::bigint, 0::bigint
    union all select 'assets', 0::bigint, 0::bigint, 0::bigint;
end
$$;

create or replace function wallet.verify_step (p_step text, p_low bigint, p_high bigint)
  returns table (what text, which text, sentence text)
  language plpgsql stable security definer set search_path = wallet, pawl, pg_temp
as $$
begin
  case p_step
    when 'seals' then return query select * from wallet.verify_seals(p_low, p_high);
    when 'txns', 'tail' then return query select * from wallet.verify_txns(p_low, p_high);
    when 'holds' then return query select * from wallet.verify_holds(p_low, p_high);
    when 'wallets' then return query select * from wallet.verify_wallets(p_low, p_high);
    when 'head' then return query select * from wallet.verify_head();
    when 'assets' then return query select * from wallet.verify_assets();
    else raise exception 'step must be one of wallet.verify_plan, got %', coalesce('"' || left(p_step, 80) || '"', 'null') using errcode = 'QW001';
  end case;
end
$$;

-- All was well up to this seal: the next incremental verification begins there.
create or replace function wallet.verify_record (p_seal bigint)
  returns void
  language sql security definer set search_path = wallet, pawl, pg_temp
as $$
  insert into wallet.verified (seal, hash, upto, at)
  select s.id, s.hash, s.upto, pawl.now() from wallet.seal s where s.id = p_seal
  on conflict (id) do update set seal = excluded.seal, hash = excluded.hash, upto = excluded.upto, at = excluded.at
$$;

-- All of it in one call, for SQL. The program goes step by step (src/wallet/verify.h) and shows how far it is.
create or replace function wallet.verify (p_incremental boolean default false)
  returns table (what text, which text, sentence text)
  language sql stable security definer set search_path = wallet, pawl, pg_temp
as $$
  select v.* from wallet.verify_plan(p_incremental) p cross join lateral wallet.verify_step(p.step, p.low, p.high) v
$$;
