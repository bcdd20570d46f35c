-- gate_limit.sql - how much the limits of a domain leave, and what was used of them.
--
-- All is read and written by claims that have locked the domain's row in pawl.gate, each in statements that began after that: so no two of them
-- count the same place twice. What runs is not counted by its settle: a lease that has ended, in whatever way, is missed by the next claim.
--
-- A rate without a burst holds in every window of the period: commands are counted in hundredths of the period, and the last hundred and one of
-- them together have no more than the rate. That uses 99 % of it. With a burst it is a bucket of tokens.
-- Errors: none of its own.

-- The key by which limits per key count: the order key up to its first slash, so that commands of one tenant can have many order keys; empty: none.
create or replace function pawl.limit_key (p_order_key text)
  returns text
  language sql immutable
as $$
  select coalesce(split_part(p_order_key, '/', 1), '')
$$;

-- The hundredth of the period in which a time is.
create or replace function pawl.gate_slice (p_at timestamptz, p_period_s integer)
  returns bigint
  language sql immutable
as $$
  select floor(extract(epoch from p_at) * 100 / p_period_s)::bigint
$$;

-- How many may begin now by one rate, and from when on one more may. p_use: null when nothing was used. Slices from a clock that was ahead by more
-- than the period do not count.
create or replace function pawl.gate_rate_left (p_limit pawl.gate_limit, p_use pawl.gate_use, p_now timestamptz, out rest integer, out at timestamptz)
  language plpgsql stable
as $$
declare
  v_slice bigint;
  v_first bigint;
  v_tokens double precision;
begin
  if p_limit.burst is not null then
    v_tokens := pawl.gate_tokens(p_limit, p_use, p_now);
    rest := floor(v_tokens);
    at := p_now + (1 - (v_tokens - rest)) * p_limit.period_s / p_limit.rate * interval '1 s';
    return;
  end if;
  v_slice := pawl.gate_slice(p_now, p_limit.period_s);
  select p_limit.rate - coalesce(sum(u.count), 0), min(u.slice) into rest, v_first
  from unnest(p_use.slices, p_use.counts) u (slice, count)
  where u.slice between v_slice - 100 and v_slice + 100;
  at := to_timestamp((coalesce(v_first, v_slice) + 101) * p_limit.period_s / 100.0) + interval '1 us';
end
$$;

-- How many tokens a bucket has.
create or replace function pawl.gate_tokens (p_limit pawl.gate_limit, p_use pawl.gate_use, p_now timestamptz)
  returns double precision
  language sql immutable
as $$
  select case when p_use.tokens is null then p_limit.burst
              else least(p_limit.burst,
                         p_use.tokens + greatest(extract(epoch from p_now - p_use.tokens_at), 0) * p_limit.rate / p_limit.period_s) end
$$;

-- How many commands of a type and key may begin now, by all limits of the domain. is_key: the limit that leaves least is of the key alone. at: when
-- to look again; infinity: when a command of the key has ended. p_key null: limits per key do not count.
create or replace function pawl.gate_left (
  p_domain_id integer, p_type text, p_key text, p_now timestamptz, out rest integer, out is_key boolean, out at timestamptz)
  language plpgsql stable
as $$
declare
  c_again constant interval := interval '100 ms'; -- another pod may end a command, and then claims for itself only
  v_limit pawl.gate_limit;
  v_use pawl.gate_use;
  v_running integer;
  v_rate record;
begin
  rest := 2147483647;
  is_key := false;
  at := 'infinity';
  for v_limit in
    select l.* from pawl.gate_limit l
    where l.domain_id = p_domain_id and l.type in ('*', p_type) and (not l.per_key or p_key is not null)
    order by l.per_key
  loop
    if v_limit.running is not null then
      select v_limit.running - count(*) into v_running
      from pawl.slot s
      where s.domain_id = p_domain_id and (v_limit.type = '*' or s.type = p_type) and (not v_limit.per_key or s.limit_key = p_key);
      if v_running < rest then
        rest := v_running;
        is_key := v_limit.per_key;
        at := case when v_limit.per_key then 'infinity' else p_now + c_again end;
      end if;
    end if;
    if v_limit.rate is not null then
      select u.* into v_use from pawl.gate_use u
      where u.domain_id = p_domain_id and u.type = v_limit.type and u.per_key = v_limit.per_key
        and u.limit_key = case when v_limit.per_key then p_key else '' end;
      v_rate := pawl.gate_rate_left(v_limit, v_use, p_now);
      if v_rate.rest < rest then
        rest := v_rate.rest;
        is_key := v_limit.per_key;
        at := v_rate.at;
      end if;
    end if;
    exit when rest <= 0;
  end loop;
end
$$;

-- Commands of a type and key begin now: write it down for each rate that counts them.
create or replace function pawl.gate_used (p_domain_id integer, p_type text, p_key text, p_count integer, p_now timestamptz)
  returns void
  language plpgsql
as $$
declare
  v_limit pawl.gate_limit;
  v_use pawl.gate_use;
  v_slice bigint;
begin
  for v_limit in
    select l.* from pawl.gate_limit l
    where l.domain_id = p_domain_id and l.type in ('*', p_type) and l.rate is not null
  loop
    select u.* into v_use from pawl.gate_use u
    where u.domain_id = p_domain_id and u.type = v_limit.type and u.per_key = v_limit.per_key
      and u.limit_key = case when v_limit.per_key then p_key else '' end;
    if v_limit.burst is not null then
      v_use.tokens := pawl.gate_tokens(v_limit, v_use, p_now) - p_count;
      v_use.tokens_at := greatest(p_now, v_use.tokens_at);
      v_use.idle_at := p_now + (v_limit.burst - v_use.tokens) * v_limit.period_s / v_limit.rate * interval '1 s';
    else
      v_slice := pawl.gate_slice(p_now, v_limit.period_s);
      select array_agg(s.slice), array_agg(s.count) into v_use.slices, v_use.counts
      from (
        select u.slice, sum(u.count)::integer as count
        from (select unnest(v_use.slices), unnest(v_use.counts) union all select v_slice, p_count) u (slice, count)
        where u.slice between v_slice - 100 and v_slice + 100
        group by u.slice) s;
      v_use.idle_at := p_now + 3 * v_limit.period_s * interval '1 s';
    end if;
    insert into pawl.gate_use (domain_id, type, per_key, limit_key, slices, counts, tokens, tokens_at, idle_at)
    values (p_domain_id, v_limit.type, v_limit.per_key, case when v_limit.per_key then p_key else '' end, v_use.slices, v_use.counts,
            v_use.tokens, v_use.tokens_at, v_use.idle_at)
    on conflict (domain_id, type, per_key, limit_key) do update
    set slices = excluded.slices, counts = excluded.counts, tokens = excluded.tokens, tokens_at = excluded.tokens_at, idle_at = excluded.idle_at;
  end loop;
end
$$;

-- Delete what is of no use any more. A claim that holds a row keeps it.
create or replace function pawl.gate_prune (p_limit integer)
  returns bigint
  language plpgsql
as $$
declare
  v_gone bigint;
begin
  delete from pawl.gate_use u where u.ctid = any (array(
    select u.ctid from pawl.gate_use u where u.idle_at < pawl.now() limit p_limit for update skip locked));
  get diagnostics v_gone = row_count;
  return v_gone;
end
$$;

-- The pauses and the limits of a domain, as arrays of objects; null: it has none.
create or replace function pawl.domain_held (p_domain text, out pauses jsonb, out limits jsonb)
  language plpgsql stable security definer set search_path = pawl, pg_temp
as $$
declare
  v_domain_id integer := pawl.domain_find(p_domain);
begin
  select jsonb_agg(jsonb_build_object('type', p.type, 'reason', p.reason, 'operator', p.operator, 'at', pawl.iso(p.at)) order by p.type)
  into pauses from pawl.pause p where p.domain_id = v_domain_id;
  select jsonb_agg(jsonb_build_object('type', l.type, 'per_key', l.per_key, 'running', l.running, 'rate_per_s', trim_scale(round(l.rate::numeric / l.period_s, 6)), 'period_s', l.period_s, 'burst', l.burst)
                   order by l.type, l.per_key)
  into limits from pawl.gate_limit l where l.domain_id = v_domain_id;
end
$$;
