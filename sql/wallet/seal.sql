-- seal.sql - a hash chain over the ledger: verification finds every row that was changed, removed or inserted later, and names it.
--
-- Sealing follows the postings and locks none of them: it reads rows that can no longer change and inserts one row per block.
-- base/allocation.sql tells up to which number no transaction can appear any more.
-- The functions that make leaves are declared stable, as the text of a row is, else PostgreSQL would not inline them. That text
-- depends on the session's settings, so wallet.leaves, the only caller, fixes every one of them.
-- A leaf is the hash of one row with everything that is money in it; eight bytes of each are kept to name the row, all of it
-- goes into the hash of the block.

-- What of a JSON value goes into a leaf: the value itself, or hashes of it where it has more than 1 GB as text, which no version could have
-- sealed. Earlier versions have stored such values, and one of them must not keep the transactions behind it from being sealed. The
-- numbers, which are what makes it so large, are hashed one by one.
create or replace function wallet.leaf_json (p_value jsonb)
  returns jsonb
  language plpgsql immutable set search_path = pg_catalog, pg_temp
as $$
declare
  v_bytes bigint := 0;
  v_hash bytea := ''::bytea;
  v_number jsonb;
begin
  -- 1 GB takes more than 6000 numbers of at most 147456 digits and at least 12 bytes each. An array, because its elements are never compressed.
  if pg_column_size(array[p_value]) < 60000 then
    return p_value;
  end if;
  for v_number in
    select e.value from jsonb_array_elements(jsonb_path_query_array(p_value, 'strict $.** ? (@.type() == "number")')) e (value)
  loop
    v_bytes := v_bytes + octet_length(v_number::text);
    v_hash := sha256(v_hash || numeric_send(v_number::numeric));
  end loop;
  if v_bytes <= 1000000000 then
    return p_value;
  end if;
  return jsonb_build_object('numbers', encode(v_hash, 'hex'), 'structure', jsonb_hash_extended(p_value, 0));
end
$$;

create or replace function wallet.leaf_txn (p wallet.txn)
  returns bytea
  language sql stable
as $$
  select sha256(convert_to(row('t', p.id, timestamptz_send(p.at), p.txn_id, p.kind, p.asset_id, p.wallet_id, p.other_id, p.amount, p.ref,
                               case when pg_column_size(p.request) >= 300 then wallet.leaf_json(p.request) else p.request end,
                               p.refusal, p.sentence)::text, 'UTF8'))
$$;

create or replace function wallet.leaf_entry (p wallet.entry)
  returns bytea
  language sql stable
as $$
  select sha256(convert_to(row('e', p.wallet_id, p.version, p.txn, p.amount, p.balance, p.held, p.floor, p.frozen)::text, 'UTF8'))
$$;

create or replace function wallet.leaf_wallet (p wallet.wallet, p_asset text)
  returns bytea
  language sql stable
as $$
  select sha256(convert_to(row('w', p.id, p.owner, p.asset_id, p_asset, p.stripe,
                               case when pg_column_size(p.metadata) >= 300 then wallet.leaf_json(p.metadata) else p.metadata end,
                               timestamptz_send(p.created_at))::text, 'UTF8'))
$$;

-- The rows of a block in their order: each transaction, what it opened, its entries. Entries without a transaction are rows too.
create or replace function wallet.leaves (p_after bigint, p_upto bigint)
  returns table (txn bigint, kind text, id bigint, leaf bytea)
  language sql stable
  set plan = merged
  set bytea_output = 'hex' set datestyle = 'ISO, YMD' set intervalstyle = 'postgres' set timezone = 'UTC' set extra_float_digits = 1
as $$
  select t.id, 'txn', 0::bigint, wallet.leaf_txn(t)
  from wallet.txn t where t.id > p_after and t.id <= p_upto
  union all
  select t.id, 'wallet', w.id, wallet.leaf_wallet(w, a.code)
  from wallet.txn t join wallet.wallet w on w.id = t.wallet_id left join wallet.asset a on a.id = w.asset_id
  where t.id > p_after and t.id <= p_upto and t.kind = 'open'
  union all
  select e.txn, 'entry', e.wallet_id, wallet.leaf_entry(e)
  from wallet.entry e where e.txn > p_after and e.txn <= p_upto
$$;

create or replace function wallet.block (p_after bigint, p_upto bigint, p_at timestamptz, p_before bytea,
                                         out rows integer, out leaves bytea, out hash bytea)
  language sql stable
as $$
  select count(*), coalesce(string_agg(substr(l.leaf, 1, 8), ''), ''),
         sha256(p_before || int8send(p_after) || int8send(p_upto) || timestamptz_send(p_at) || coalesce(string_agg(l.leaf, ''), ''))
  from (select l.leaf from wallet.leaves(p_after, p_upto) l order by l.txn, l.kind desc, l.id) l -- once, instead of in each aggregate
$$;

-- Up to which number nothing can change any more; -1: that is not known yet.
create or replace function wallet.seal_bound ()
  returns bigint
  language plpgsql
as $$
declare
  -- In this order, for the reasons in base/allocation.sql.
  v_last bigint := (select case when s.is_called then s.last_value + 9999 else -1 end from wallet.txn_seq s);
  v_own bigint := pawl.allocation_bound();
  v_oldest bigint := pawl.allocation_oldest('wallet.txn_allocation', v_own);
  v_mark wallet.seal_mark;
begin
  if v_oldest >= v_own then
    return v_last; -- nothing was posted since
  end if;
  select * into strict v_mark from wallet.seal_mark;
  -- A mark from the future came with a restored database, whose transaction ids begin anew.
  if v_oldest >= v_mark.before or v_mark.before > v_own then
    update wallet.seal_mark set upto = v_last, before = v_own;
    return case when v_mark.before > v_own then -1 else v_mark.upto end;
  end if;
  return -1;
end
$$;

-- Seals one block of at most p_limit transactions; returns how many it holds. One at a time: a second caller returns 0.
create or replace function wallet.seal (p_limit integer default 1000)
  returns integer
  language plpgsql security definer set search_path = wallet, pawl, pg_temp
  set plan = index
as $$
declare
  v_last wallet.seal;
  v_upto bigint;
  v_count integer;
  v_block record;
  v_now timestamptz := pawl.now();
begin
  if (p_limit between 1 and 100000) is not true then
    raise exception 'limit must be from 1 to 100000' using errcode = 'QW001';
  end if;
  -- Not a row lock: that assigns a transaction id, and wallet.seal_bound needs one that is assigned later.
  begin
    lock table wallet.txn_allocation in share update exclusive mode nowait;
  exception when lock_not_available then
    return 0;
  end;
  select * into v_last from wallet.seal s order by s.id desc limit 1;
  v_upto := wallet.seal_bound();
  select count(*), case when count(*) < p_limit then v_upto else max(t.id) end into v_count, v_upto
  from (select t.id from wallet.txn t where t.id > coalesce(v_last.upto, -1) and t.id <= v_upto order by t.id limit p_limit) t;
  if v_count = 0 then
    return 0;
  end if;
  v_block := wallet.block(coalesce(v_last.upto, -1), v_upto, v_now, coalesce(v_last.hash, ''));
  insert into wallet.seal (id, upto, rows, leaves, hash, sealed_at)
  values (coalesce(v_last.id, 0) + 1, v_upto, v_block.rows, v_block.leaves, v_block.hash, v_now);
  return v_count;
end
$$;
