-- expire.sql - releases holds that have expired, once, whichever process calls first.
--
-- Invariants
--   1. An expiry has no key that a client could use before it: its txn_id is random, and the hold's status, read under the
--      wallet's lock, decides that it happens once. The index txn_hold_end backs this up.
--   2. Nothing is waited for: a wallet that another transaction has locked is left for the next call.
--   3. A hold that cannot be released (its rows were damaged) is reported as a warning and stops no other.
-- Lock order: wallets in any order, never waited for, so no deadlock is possible; lock_timeout bounds the rest.
-- Errors: QW001 a limit out of range.

-- Releases these holds, whose wallets are locked; returns how many were.
create or replace function wallet.expire_holds (p_holds uuid[])
  returns integer
  language plpgsql
as $$
declare
  v_count integer := 0;
begin
  begin
    return (select count(*) from wallet.post_batch(
              array_fill('expire'::text, array[cardinality(p_holds)]), array(select gen_random_uuid() from generate_series(1, cardinality(p_holds))),
              null, null, null, null, p_holds, null, null, true) p
            where p.is_new and p.refusal is null);
  exception when others then
    if cardinality(p_holds) = 1 then
      raise warning 'hold % cannot be released: %', p_holds[1], sqlerrm;
      return 0;
    end if;
  end;
  for i in 1 .. cardinality(p_holds) loop
    v_count := v_count + wallet.expire_holds(p_holds[i:i]);
  end loop;
  return v_count;
end
$$;

-- At most p_limit of those that are due and expire at p_from or later. Call it in a transaction of its own: it keeps their wallets locked
-- until the end of it.
--
-- released   how many this call has released
-- next_at    the first that is left; null: none is
-- low        no open hold that this call could see expires before: where the next call may start. Holds that have ended leave dead rows
--            in the index until they are vacuumed, and with an old snapshot all of them; a call that starts behind them does not
--            read them. A transaction that was open for longer than its hold lasted commits below it: a call with p_from null, now
--            and then, finds those.
create or replace function wallet.expire_from (
  p_limit integer, p_from timestamptz, out released integer, out next_at timestamptz, out low timestamptz)
  language plpgsql security definer set search_path = wallet, pawl, pg_temp
  set plan = posting set lock_timeout = '1s'
as $$
declare
  c_failures constant integer := 1000; -- in one call
  v_now timestamptz := pawl.now();
  v_from timestamptz := coalesce(p_from, timestamptz '-infinity');
  v_at timestamptz := v_from;
  v_id bigint := -1;
  v_count integer := 0;
  v_failed integer := 0;
  v_seen integer;
  v_released integer;
  v_due uuid[];
begin
  if (p_limit between 1 and 10000) is not true then
    raise exception 'limit must be from 1 to 10000' using errcode = 'QW001';
  end if;
  while v_count < p_limit and v_failed < c_failures loop
    -- Locked wallets do not count towards the limit.
    select count(*), array_agg(t.txn_id) filter (where t.txn_id is not null), max(d.expires_at), max(d.id) filter (where d.last)
    into v_seen, v_due, v_at, v_id
    from (select d.*, row_number() over (order by d.expires_at desc, d.id desc) = 1 as last
          from (select h.id, h.expires_at
                from wallet.hold h join wallet.wallet w on w.id = h.wallet_id
                where h.status = 'OPEN' and h.expires_at is not null and h.expires_at <= v_now and (h.expires_at, h.id) > (v_at, v_id)
                order by h.expires_at, h.id
                limit p_limit - v_count
                for no key update of w skip locked) d) d
    left join lateral (select t.txn_id from wallet.txn t where t.id = d.id limit 1) t on true;
    exit when v_seen = 0;
    v_released := case when v_due is not null then wallet.expire_holds(v_due) else 0 end;
    v_count := v_count + v_released;
    v_failed := v_failed + v_seen - v_released;
  end loop;
  released := v_count;
  next_at := (select h.expires_at from wallet.hold h
              where h.status = 'OPEN' and h.expires_at is not null and h.expires_at >= v_from order by h.expires_at limit 1);
  low := least(next_at, v_now);
end
$$;

-- At most p_limit of those that are due; returns how many were released by this call.
create or replace function wallet.expire (p_limit integer default 100)
  returns integer
  language sql security definer set search_path = wallet, pawl, pg_temp
as $$
  select e.released from wallet.expire_from(p_limit, null) e
$$;

-- The domain of the bus that gets a command for each transaction in an asset; null: none.
create or replace function wallet.emit_to (p_asset text, p_domain text)
  returns void
  language plpgsql security definer set search_path = wallet, pawl, pg_temp
as $$
begin
  update wallet.asset a set emit_to = p_domain where a.id = wallet.asset_id(p_asset);
  if p_domain is not null then
    perform pawl.domain_id(p_domain);
  end if;
end
$$;
