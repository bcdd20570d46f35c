-- kind.sql - which arguments each kind of operation takes, and whether an operation keeps to it.
--
-- Invariant: an argument without a meaning for a kind is refused by its name, never ignored. src/wallet/kind.h holds the same table
-- for C, HTTP and the command line; the test wallet_kinds_are_the_same_in_sql compares the two.
-- Errors: QW001, with the item and the argument; 42501 see treasury.sql.

-- The arguments in order; "?" marks those that may be left out. Null: there is no such kind.
-- legs, floor, expires_in_s and metadata are keys of the request.
create or replace function wallet.kind_takes (p_kind text)
  returns text
  language sql immutable
as $$
  select case p_kind
    when 'transfer' then 'owner other amount asset? metadata?'
    when 'topup' then 'owner amount asset? metadata?'
    when 'spend' then 'owner amount asset? metadata?'
    when 'multi' then 'legs metadata?'
    when 'hold' then 'owner amount asset? expires_in_s? metadata?'
    when 'capture' then 'ref other? amount? asset? metadata?'
    when 'void' then 'ref asset? metadata?'
    when 'refund' then 'ref amount? asset? metadata?'
    when 'freeze' then 'owner asset? metadata?'
    when 'unfreeze' then 'owner asset? metadata?'
    when 'floor' then 'owner floor asset? metadata?'
  end
$$;

-- Is it a JSON number without a fraction, in this range?
create or replace function wallet.is_whole (p_value jsonb, p_least bigint, p_most bigint)
  returns boolean
  language sql immutable
as $$
  select coalesce(case when jsonb_typeof(p_value) = 'number' and p_value #>> '{}' ~ '^-?[0-9]{1,18}$'
                       then (p_value #>> '{}')::bigint between p_least and p_most end, false)
$$;

-- What is wrong with the legs of a transaction; null: nothing.
create or replace function wallet.legs_fault (p_legs jsonb)
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
  elsif exists (select from jsonb_array_elements(p_legs) l
                where jsonb_typeof(coalesce(l -> 'asset', '""')) <> 'string' or l - '{owner,amount,asset}'::text[] <> '{}') then
    return 'legs must have an owner, an amount and an asset as text, and nothing else';
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

-- Has it more than 262144 bytes as text (65536 as clients may send them, with the blanks that jsonb adds)? A number such as 1e131071 takes few bytes in jsonb, and once stored it would break sealing,
-- verification and statements. Below 1000 bytes at most 12 MB are written out to find out.
create or replace function wallet.is_too_large (p_value jsonb)
  returns boolean
  language plpgsql immutable
as $$
begin
  -- PL/pgSQL, because the planner would write the constant argument of a SQL function out before the CASE around it is decided.
  if pg_column_size(array[p_value]) < 1000 then
    return coalesce(octet_length(p_value::text) > 262144, false);
  end if;
  return coalesce(pawl.json_bytes(p_value) > 262144, false);
end
$$;

-- What is wrong with the keys of a request; null: nothing.
create or replace function wallet.request_fault (p_kind text, p_takes text, p_request jsonb)
  returns text
  language plpgsql immutable
as $$
declare
  v_key text;
begin
  if jsonb_typeof(p_request) <> 'object' then
    return 'request must be an object';
  end if;
  select k into v_key from jsonb_object_keys(p_request) k
  where k not in ('legs', 'floor', 'expires_in_s', 'metadata') or strpos(p_takes, k) = 0
  order by k limit 1;
  if found then
    return format('%s must not be given: %s takes %s', left(v_key, 100), p_kind, p_takes);
  elsif wallet.is_too_large(p_request -> 'metadata') then
    return 'metadata must have at most 262144 bytes as text';
  elsif p_kind = 'multi' then
    return wallet.legs_fault(p_request -> 'legs');
  elsif p_kind = 'floor' and not wallet.is_whole(p_request -> 'floor', -9007199254740991, 0) then
    return 'floor must be from -9007199254740991 to 0';
  elsif p_request ? 'expires_in_s' and not wallet.is_whole(p_request -> 'expires_in_s', 1, 315360000) then
    return 'expires_in_s must be from 1 to 315360000';
  end if;
  return null;
end
$$;

-- What is wrong with one operation, of a kind that takes p_takes; null: nothing. One expression, so that it is inlined.
create or replace function wallet.item_fault (
  p_takes text, p_kind text, p_txn_id uuid, p_owner text, p_amount bigint, p_other text, p_asset text, p_ref uuid, p_request jsonb)
  returns text
  language sql stable
as $$
  select case
    when p_takes is null then 'kind must be topup, spend, transfer, multi, hold, capture, void, refund, freeze, unfreeze or floor'
      || coalesce(', got "' || left(p_kind, 40) || '"', '')
    when p_txn_id is null then 'txn_id must be a UUID'
    when p_amount is not null and strpos(p_takes, 'amount') = 0 then format('amount must not be given: %s takes %s', p_kind, p_takes)
    when p_amount not between 1 and 9007199254740991 or p_amount is null and p_takes like '%amount %'
      then 'amount must be from 1 to 9007199254740991' || coalesce(', got ' || p_amount, '')
    when p_owner is null and strpos(p_takes, 'owner') > 0 then 'owner must be given'
    when p_owner is not null and strpos(p_takes, 'owner') = 0 then format('owner must not be given: %s takes %s', p_kind, p_takes)
    when p_owner like '@%' then 'owner must not begin with "@"'
    when p_other is null and p_takes like '%other %' then 'other must be given'
    when p_other is not null and strpos(p_takes, 'other') = 0 then format('other must not be given: %s takes %s', p_kind, p_takes)
    when p_other like '@%' then 'other must not begin with "@"'
    when p_owner = p_other then 'owner and other must not be the same'
    when p_asset is not null and strpos(p_takes, 'asset') = 0 then format('asset must not be given: %s takes %s', p_kind, p_takes)
    when p_ref is null and strpos(p_takes, 'ref') > 0 then 'ref must be a UUID'
    when p_ref is not null and strpos(p_takes, 'ref') = 0 then format('ref must not be given: %s takes %s', p_kind, p_takes)
    when p_request is not null or p_kind in ('multi', 'floor') then wallet.request_fault(p_kind, p_takes, coalesce(p_request, '{}'))
  end
$$;

-- Every operation of a call, and the caller's right to them.
create or replace function wallet.post_check (
  p_kinds text[], p_txn_ids uuid[], p_owners text[], p_amounts bigint[], p_others text[], p_assets text[], p_refs uuid[],
  p_requests jsonb[])
  returns void
  language plpgsql
as $$
declare
  v_count integer := cardinality(p_kinds);
  v_dims text := format('[1:%s]', v_count);
  v_takes text;
  v_ord integer;
  v_fault text;
begin
  if (v_count between 1 and 10000) is not true then
    raise exception 'arrays must hold 1 to 10000 items and be of one length' using errcode = 'QW001';
  end if;
  -- The same in one expression first: nearly always there is nothing to say.
  if (array_dims(p_kinds) = v_dims and array_dims(p_txn_ids) = v_dims and (p_owners is null or array_dims(p_owners) = v_dims)
      and (p_amounts is null or array_dims(p_amounts) = v_dims) and (p_others is null or array_dims(p_others) = v_dims)
      and (p_assets is null or array_dims(p_assets) = v_dims) and (p_refs is null or array_dims(p_refs) = v_dims)
      and (p_requests is null or array_dims(p_requests) = v_dims)) is not true then
    perform pawl.array_check('kinds', p_kinds, v_count, 'QW001'), pawl.array_check('txn_ids', p_txn_ids, v_count, 'QW001'),
            pawl.array_check('owners', p_owners, v_count, 'QW001', true), pawl.array_check('amounts', p_amounts, v_count, 'QW001', true),
            pawl.array_check('others', p_others, v_count, 'QW001', true), pawl.array_check('assets', p_assets, v_count, 'QW001', true),
            pawl.array_check('refs', p_refs, v_count, 'QW001', true), pawl.array_check('requests', p_requests, v_count, 'QW001', true);
  end if;
  if v_count = 1 then
    v_takes := wallet.kind_takes(p_kinds[1]);
    v_ord := 1;
    v_fault := wallet.item_fault(v_takes, p_kinds[1], p_txn_ids[1], p_owners[1], p_amounts[1], p_others[1], p_assets[1], p_refs[1], p_requests[1]);
  else
    select f.ord, f.fault into v_ord, v_fault
    from (
      select u.ord, wallet.item_fault(u.takes, p_kinds[u.ord], p_txn_ids[u.ord], p_owners[u.ord], p_amounts[u.ord], p_others[u.ord],
                                      p_assets[u.ord], p_refs[u.ord], p_requests[u.ord]) as fault
      from (select n as ord, wallet.kind_takes(p_kinds[n]) as takes from generate_series(1, v_count) n offset 0) u
    ) f
    where f.fault is not null
    order by f.ord
    limit 1;
  end if;
  if v_fault is not null then
    raise exception 'item %: %', v_ord, v_fault using errcode = 'QW001';
  end if;
  if p_kinds && '{topup,freeze,unfreeze,floor}' or 'multi' = any (p_kinds) and wallet.treasury_needed(p_kinds, p_requests) then
    perform wallet.treasury_check();
  end if;
end
$$;
