-- post.sql - money moves: arrays of operations in, a verdict for each out, in one transaction.
--
-- Invariants
--   1. The wallets are locked before anything is decided, in the order of their ids, and the stripe of @system after them.
--   2. A key decides once. It is looked up under the locks, so twins, which lock the same wallets, see each other; two
--      bodies under one key that lock different wallets meet at the unique key, and one of them runs again (40001).
--   3. An operation is posted whole or not at all; its entries sum to zero in each asset (holds change no balance).
--   4. No operation takes a wallet's available amount (balance - held - floor) below zero.
--   5. Refusals that lie in the books are kept under their key and told again, whatever changed since. What was never
--      decided (unknown wallet, hold or transaction; a bad request) leaves no trace.
-- How: all of a batch at once. The running sum of each wallet says whether every operation can succeed in order; only
-- when one cannot, a loop decides one after the other. What was decided is written at once in any case: three inserts, and
-- one update per wallet.
-- Functions with more than an expression in them are PL/pgSQL, because it keeps its plans; the settings of wallet.post hold for
-- all that it calls. A plan that was made when the books were small lives on when they are large, so none may begin with the
-- books: rows are looked up one by one (lateral, limit 1), and the joins that walk over a whole table are off.
-- Lock order: wallets by id, stripes of @system by asset, unique keys.
-- Errors: QW001 arrays of different length or a value out of range; QW002 atomic, and one was refused; 40001 run again;
-- 42501 see treasury.sql.

-- Is it a JSON number without a fraction, in this range?
create or replace function wallet.is_whole (p_value jsonb, p_least bigint, p_most bigint)
  returns boolean
  language sql immutable
as $$
  select coalesce(case when jsonb_typeof(p_value) = 'number' and p_value #>> '{}' ~ '^-?[0-9]{1,18}$'
                       then (p_value #>> '{}')::bigint between p_least and p_most end, false)
$$;

create or replace function wallet.post_check (
  p_kinds text[], p_txn_ids uuid[], p_owners text[], p_amounts bigint[], p_others text[], p_assets text[], p_refs uuid[],
  p_requests jsonb[])
  returns void
  language plpgsql immutable
as $$
declare
  v_count integer := coalesce(cardinality(p_kinds), 0);
  v_bad record;
begin
  if v_count = 0 or v_count > 10000 or v_count <> cardinality(p_txn_ids) or v_count <> coalesce(cardinality(p_owners), v_count)
     or v_count <> coalesce(cardinality(p_amounts), v_count) or v_count <> coalesce(cardinality(p_others), v_count)
     or v_count <> coalesce(cardinality(p_assets), v_count) or v_count <> coalesce(cardinality(p_refs), v_count)
     or v_count <> coalesce(cardinality(p_requests), v_count) then
    raise exception 'arrays must hold 1 to 10000 items and be of one length' using errcode = 'QW001';
  end if;
  select b.* into v_bad
  from (
    select u.ord, case
        when u.kind not in ('topup', 'spend', 'transfer', 'multi', 'hold', 'capture', 'void', 'expire', 'refund', 'freeze', 'unfreeze', 'floor')
             is not false then 'kind must be topup, spend, transfer, multi, hold, capture, void, refund, freeze, unfreeze or floor'
        when u.txn_id is null then 'txn_id must be a UUID'
        when u.amount is not null and u.kind in ('multi', 'void', 'expire', 'freeze', 'unfreeze', 'floor') then 'amount must not be given'
        when u.amount not between 1 and 9007199254740991 then 'amount must be from 1 to 9007199254740991'
        when u.amount is null and u.kind in ('topup', 'spend', 'transfer', 'hold') then 'amount must be from 1 to 9007199254740991'
        when u.owner is null and u.kind in ('topup', 'spend', 'transfer', 'hold', 'freeze', 'unfreeze', 'floor') then 'owner must be given'
        when u.owner like '@%' then 'owner must not begin with "@"'
        when u.kind = 'transfer' and u.other is null then 'other must be given'
        when u.other like '@%' then 'other must not begin with "@"'
        when u.owner = u.other then 'owner and other must not be the same'
        when u.ref is null and u.kind in ('capture', 'void', 'expire', 'refund') then 'ref must be a UUID'
        when u.kind = 'multi' then wallet.legs_check(u.request -> 'legs')
        when u.kind = 'floor' and not wallet.is_whole(u.request -> 'floor', -9007199254740991, 0)
          then 'floor must be from -9007199254740991 to 0'
        when u.request ? 'expires_in_s' and not wallet.is_whole(u.request -> 'expires_in_s', 1, 315360000)
          then 'expires_in_s must be from 1 to 315360000'
      end as sentence
    from unnest(p_kinds, p_txn_ids, p_owners, p_amounts, p_others, p_assets, p_refs, p_requests)
      with ordinality u (kind, txn_id, owner, amount, other, asset, ref, request, ord)
    where u.kind in ('topup', 'spend', 'transfer', 'hold', 'capture', 'refund') is not true
       or u.txn_id is null or u.amount is null or u.amount not between 1 and 9007199254740991 or u.owner is null or u.owner like '@%'
       or u.other like '@%' or u.owner = u.other or u.other is null and u.kind = 'transfer'
       or u.ref is null and u.kind in ('capture', 'refund') or u.request is not null
  ) b
  where b.sentence is not null
  order by b.ord
  limit 1;
  if found then
    raise exception 'item %: %', v_bad.ord, v_bad.sentence using errcode = 'QW001';
  end if;
end
$$;

-- What is wrong with the legs of a transaction; null: nothing.
create or replace function wallet.legs_check (p_legs jsonb)
  returns text
  language plpgsql immutable
as $$
begin
  if jsonb_typeof(p_legs) is distinct from 'array' or jsonb_array_length(p_legs) not between 2 and 100 then
    return 'legs must be an array of 2 to 100';
  elsif exists (select from jsonb_array_elements(p_legs) l
                where jsonb_typeof(l -> 'owner') is distinct from 'string' or l ->> 'amount' = '0'
                   or not wallet.is_whole(l -> 'amount', -9007199254740991, 9007199254740991)) then
    return 'legs must have an owner and an amount from 1 to 9007199254740991, positive or negative';
  elsif exists (select from jsonb_array_elements(p_legs) l group by l ->> 'owner', coalesce(l ->> 'asset', 'CREDIT') having count(*) > 1) then
    return 'legs must name each owner once per asset';
  elsif exists (select from jsonb_array_elements(p_legs) l group by coalesce(l ->> 'asset', 'CREDIT') having sum((l ->> 'amount')::numeric) <> 0) then
    return 'legs must sum to zero in each asset';
  elsif not exists (select from jsonb_array_elements(p_legs) l where l ->> 'owner' <> '@system') then
    return 'legs must name an owner';
  end if;
  return null;
end
$$;

-- Where stretches of operations that can be decided together begin. A key, hold or transaction that comes twice begins a new
-- one, and so does an operation that names another one of the stretch, because the second must see what the first one did; what
-- changes how a wallet is judged stands alone.
create or replace function wallet.post_stretches (p_kinds text[], p_txn_ids uuid[], p_refs uuid[])
  returns integer[]
  language plpgsql immutable
as $$
declare
  v_starts integer[] := array[1];
  v_start integer := 1;
  v_row record;
begin
  if cardinality(p_kinds) = 1 then
    return v_starts;
  end if;
  for v_row in
    select e.ord, max(e.earlier) as earlier
    from (
      select t.ord, lag(t.ord) over (partition by t.token order by t.ord) as earlier
      from (select u.ord, u.txn_id as token from unnest(p_txn_ids) with ordinality u (txn_id, ord)
            union all
            select u.ord, u.ref from unnest(p_refs) with ordinality u (ref, ord) where u.ref is not null) t
      union all
      select u.ord + n, u.ord - 1 + n from unnest(p_kinds) with ordinality u (kind, ord) cross join generate_series(0, 1) n
      where u.kind in ('freeze', 'unfreeze', 'floor') and u.ord + n <= cardinality(p_kinds)
    ) e
    where e.earlier > 0 and e.earlier < e.ord
    group by e.ord
    order by e.ord
  loop
    if v_row.earlier >= v_start then
      v_start := v_row.ord;
      v_starts := v_starts || v_start;
    end if;
  end loop;
  return v_starts;
end
$$;

-- Locks wallets by id, then a stripe of @system for each asset that needs one: one that nobody holds, else that of our own
-- number. last_at: of what is locked.
create or replace function wallet.post_lock (p_wallets bigint[], out systems bigint[], out stripes bigint[], out last_at timestamptz)
  language plpgsql
as $$
declare
  v_system bigint;
  v_all bigint[];
  v_id bigint;
  v_mine integer := pg_backend_pid();
begin
  systems := array(select w.id from wallet.asset a join wallet.wallet w on w.owner = '@system' and w.asset_id = a.id and w.stripe = 0
                   where w.id = any (p_wallets) order by w.id);
  stripes := '{}';
  select max(s.last_at) into last_at
  from (select s.last_at from wallet.state s where s.id = any (p_wallets) and s.id <> all (systems) order by s.id for update) s;
  foreach v_system in array systems loop
    v_all := array(select w.id from wallet.wallet f join wallet.wallet w on w.owner = f.owner and w.asset_id = f.asset_id
                   where f.id = v_system order by w.id);
    v_id := null;
    for i in 0 .. cardinality(v_all) - 1 loop
      select s.id, greatest(s.last_at, post_lock.last_at) into v_id, last_at
      from wallet.state s where s.id = v_all[1 + (v_mine + i) % cardinality(v_all)] for update skip locked;
      exit when found;
    end loop;
    if v_id is null then
      select s.id, greatest(s.last_at, post_lock.last_at) into strict v_id, last_at
      from wallet.state s where s.id = v_all[1 + v_mine % cardinality(v_all)] for update;
    end if;
    stripes := stripes || v_id;
  end loop;
end
$$;

-- A call of several stretches would lock wallets stretch by stretch, and two such calls each other out: it locks all that it
-- names before the first one.
create or replace function wallet.post_lock_all (p_owners text[], p_others text[], p_refs uuid[], p_requests jsonb[])
  returns void
  language plpgsql
  set jit = off set enable_seqscan = off
as $$
begin
  perform from wallet.state s
  where s.id = any (array(
    select w.id from wallet.wallet w
    where w.owner <> '@system'
      and w.owner = any (p_owners || p_others || array(select l ->> 'owner' from unnest(p_requests) r, jsonb_array_elements(r -> 'legs') l))
    union
    select e.wallet_id
    from unnest(p_refs) r (txn_id)
    cross join lateral (select t.id from wallet.txn t where t.txn_id = r.txn_id limit 1) t
    cross join lateral (select e.wallet_id from wallet.entry e where e.txn = t.id offset 0) e
    where wallet.owner_of(e.wallet_id) <> '@system'))
  order by s.id
  for update;
end
$$;

/*
 * kind      owner             other                amount            ref          request
 * topup     who gets it       -                    how much          -            metadata
 * spend     who pays          -                    how much          -            metadata
 * transfer  who pays          who gets it          how much          -            metadata
 * multi     -                 -                    -                 -            legs [{owner, amount, asset}], metadata
 * hold      whose             -                    how much          -            expires_in_s, metadata
 * capture   -                 who gets it; @system how much; all     the hold     metadata
 * void      -                 -                    -                 the hold     metadata
 * expire    -                 -                    -                 the hold     -
 * refund    -                 -                    how much; all     transaction  metadata
 * freeze    whose             -                    -                 -            metadata      likewise unfreeze
 * floor     whose             -                    -                 -            floor, metadata
 */
create or replace function wallet.post (
  p_kinds text[], p_txn_ids uuid[], p_owners text[], p_amounts bigint[], p_others text[] default null,
  p_assets text[] default null, p_refs uuid[] default null, p_requests jsonb[] default null, p_atomic boolean default false)
  returns table (
    ord integer, txn_id uuid, is_new boolean,
    refusal text,       -- null: posted
    sentence text,      -- why not
    differs text,       -- the field in which the key's first use differs: nothing was done
    kind text, owner text, other text, asset text, amount bigint,
    balance_before bigint, balance bigint, held bigint, available bigint, version bigint, -- the owner's, at its time
    balance_now bigint, -- and at this time
    number bigint, at timestamptz)
  language plpgsql security definer set search_path = wallet, pawl, pg_temp
  set jit = off set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_material = off
  set enable_hashjoin = off set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
  v_starts integer[];
  v_from integer;
  v_upto integer;
begin
  perform wallet.post_check(p_kinds, p_txn_ids, p_owners, p_amounts, p_others, p_assets, p_refs, p_requests);
  if wallet.treasury_needed(p_kinds, p_requests) then
    perform wallet.treasury_check();
  end if;
  v_starts := wallet.post_stretches(p_kinds, p_txn_ids, p_refs);
  if cardinality(v_starts) > 1 then
    perform wallet.post_lock_all(p_owners, p_others, p_refs, p_requests);
  end if;
  for i in 1 .. cardinality(v_starts) loop
    v_from := v_starts[i];
    v_upto := coalesce(v_starts[i + 1] - 1, cardinality(p_kinds));
    return query
      select p.ord + v_from - 1, p.txn_id, p.is_new, p.refusal, p.sentence, p.differs, p.kind, p.owner, p.other, p.asset, p.amount,
             p.balance_before, p.balance, p.held, p.available, p.version, p.balance_now, p.number, p.at
      from wallet.post_together(p_kinds[v_from:v_upto], p_txn_ids[v_from:v_upto], p_owners[v_from:v_upto], p_amounts[v_from:v_upto],
        p_others[v_from:v_upto], p_assets[v_from:v_upto], p_refs[v_from:v_upto], p_requests[v_from:v_upto],
        case when p_atomic then v_from end) p
      order by p.ord;
  end loop;
end
$$;
