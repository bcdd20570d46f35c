-- policy.sql - retry policies: how long a failed command waits for its next attempt, and what one in the troubleshooting queue does with
-- its order key; by domain and type.
--
-- A type's own policy comes before that of its domain (type '*'), and that before the default: 10, 60, 300 s, and hold. Delays and order
-- key are looked up apart. The last delay applies to all further attempts; up to a fifth is subtracted at random (pawl.retry_delay_ms).
-- Errors: QU001 a domain, type, delay or order_key out of range.

-- Replace a policy; p_type NULL is the domain's own. A NULL is not set by this policy; both NULL remove it.
-- p_order_key: 'hold' or 'release'.
create or replace function pawl.retry_policy_set (p_domain text, p_type text, p_delays_ms bigint[], p_order_key text default null)
  returns void
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
declare
  v_type text := coalesce(p_type, '*');
  v_count integer := cardinality(p_delays_ms);
begin
  if v_type <> '*' then
    perform pawl.name_check('type', v_type, 100);
  end if;
  if (p_order_key in ('hold', 'release')) is false then
    raise exception 'order_key must be "hold" or "release", got "%"', left(p_order_key, 80) using errcode = 'QU001';
  end if;
  if p_delays_ms is null and p_order_key is null then
    delete from pawl.retry_policy r where r.domain_id = pawl.domain_find(p_domain) and r.type = v_type;
    return;
  end if;
  if v_count not between 1 and 100 then
    raise exception 'delays must have 1 to 100 elements, got %', v_count using errcode = 'QU001';
  end if;
  perform pawl.array_check('delays', p_delays_ms, v_count, 'QU001', true);
  if exists (select from unnest(p_delays_ms) d where (d between 0 and 2147483647) is not true) then
    raise exception 'each delay must be from 0 to 2147483647 ms' using errcode = 'QU001';
  end if;
  insert into pawl.retry_policy (domain_id, type, delays_ms, order_key)
  values (pawl.domain_id(p_domain), v_type, p_delays_ms::integer[], p_order_key)
  on conflict (domain_id, type) do update set delays_ms = excluded.delays_ms, order_key = excluded.order_key;
end
$$;

-- The policies of a domain as they apply, its own first: one row at least, because the default counts when nothing was set.
create or replace function pawl.retry_policy_list (p_domain text)
  returns table (type text, delays_ms integer[], is_default boolean, order_key text)
  language sql stable security definer set search_path = pawl, pg_temp
as $$
  select p.type, coalesce(p.delays_ms, o.delays_ms, '{10000,60000,300000}'), p.type = '*' and o.type is null,
         coalesce(p.order_key, o.order_key, 'hold')
  from (select '*' as type, null::integer[] as delays_ms, null::text as order_key
        union all
        (select r.type, r.delays_ms, r.order_key from pawl.retry_policy r
         where r.domain_id = pawl.domain_find(p_domain) and r.type <> '*' order by r.type limit 1000)) p
  left join pawl.retry_policy o on o.domain_id = pawl.domain_find(p_domain) and o.type = '*'
  order by p.type <> '*', p.type
$$;
