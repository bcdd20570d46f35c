-- policy.sql - how long a failed command waits for its next attempt, by domain and type.
--
-- A type's own schedule comes before that of its domain (type '*'), and that before 10, 60, 300 s. The last delay serves all further
-- attempts; up to a fifth is taken off at random (pawl.retry_delay_ms).
-- Errors: QU001 a domain, type or delay out of range.

-- Set a schedule; p_type NULL is the domain's own. p_delays_ms NULL removes it.
create or replace function pawl.retry_policy_set (p_domain text, p_type text, p_delays_ms bigint[])
  returns void
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
declare
  v_type text := coalesce(p_type, '*');
  v_count integer := cardinality(p_delays_ms);
begin
  if v_type <> '*' and v_type !~ '^[A-Za-z0-9][A-Za-z0-9_.:-]{0,99}$' then
    raise exception 'type must be 1 to 100 letters, digits, "_", ".", ":" or "-", beginning with a letter or digit'
      using errcode = 'QU001';
  end if;
  if p_delays_ms is null then
    delete from pawl.retry_policy r where r.domain_id = pawl.domain_find(p_domain) and r.type = v_type;
    return;
  end if;
  if v_count not between 1 and 100 then
    raise exception 'delays must have 1 to 100 elements, got %', v_count using errcode = 'QU001';
  end if;
  perform pawl.array_check('delays', p_delays_ms, v_count, 'QU001');
  if exists (select from unnest(p_delays_ms) d where (d between 0 and 2147483647) is not true) then
    raise exception 'each delay must be from 0 to 2147483647 ms' using errcode = 'QU001';
  end if;
  insert into pawl.retry_policy (domain_id, type, delays_ms)
  values (pawl.domain_id(p_domain), v_type, p_delays_ms::integer[])
  on conflict (domain_id, type) do update set delays_ms = excluded.delays_ms;
end
$$;

-- The schedules of a domain, its own first: one row at least, because the default counts when nothing was set.
create or replace function pawl.retry_policy_list (p_domain text)
  returns table (type text, delays_ms integer[], is_default boolean)
  language sql stable security definer set search_path = pawl, pg_temp
as $$
  select '*', coalesce((select r.delays_ms from pawl.retry_policy r where r.domain_id = pawl.domain_find(p_domain) and r.type = '*'),
                       '{10000,60000,300000}'),
         not exists (select from pawl.retry_policy r where r.domain_id = pawl.domain_find(p_domain) and r.type = '*')
  union all
  (select r.type, r.delays_ms, false from pawl.retry_policy r
   where r.domain_id = pawl.domain_find(p_domain) and r.type <> '*' order by r.type limit 1000)
$$;
