-- list.sql - what lists share: filters by name, filters by time.
--
-- Lists are read by id, newest first. A page reads a bounded number of rows, whether they match or not, and says how
-- far it has read (bus/show.sql). Errors: QU001, or that of the caller: an argument is out of range.

-- Names with a "*" at their end mean all that begin so; others mean themselves. As patterns for LIKE ANY; null: none
-- were given.
create or replace function pawl.names_like (p_names text[])
  returns text[]
  language sql immutable
as $$
  select case when p_names is not null then array(
    select case when n like '%*' then regexp_replace(left(n, -1), '([\\%_])', '\\\1', 'g') || '%'
                else regexp_replace(n, '([\\%_])', '\\\1', 'g') end
    from unnest(p_names) n where n is not null) end
$$;

-- The least id from which on no row is older than this moment, by binary search: some 30 lookups by key, however
-- many rows there are. Null: no moment was given. Ids are allocated before their transactions take the time, so the
-- order is not exact: an entry may be out of it by as long as its call waited for a lock. Lists allow for a minute,
-- and check the times of the rows that they read.
create or replace function pawl.id_at (p_table regclass, p_column name, p_at timestamptz)
  returns bigint
  language plpgsql stable set search_path = pawl, pg_temp
  set plan = keyed
as $$
declare
  v_probe text := format('select t.id, t.%I from %s t where t.id >= $1 and t.id < $2 order by t.id limit 1',
                         p_column, p_table);
  v_low bigint; -- older
  v_high bigint; -- not older
  v_id bigint;
  v_at timestamptz;
begin
  if p_at is null then
    return null;
  end if;
  execute format('select min(t.id) - 1, max(t.id) + 1 from %s t', p_table) into v_low, v_high;
  while v_high - v_low > 1 loop
    execute v_probe into v_id, v_at using v_low + (v_high - v_low) / 2, v_high;
    if v_id is null then
      v_high := v_low + (v_high - v_low) / 2;
    elsif v_at < p_at then
      v_low := v_id;
    else
      v_high := v_low + (v_high - v_low) / 2;
    end if;
  end loop;
  return coalesce(v_high, 1);
end
$$;

-- The ids between which a list reads. after: those at and below it are too old. before: the cursor, or the first
-- that is too new.
create or replace function pawl.id_range (
  p_table regclass, p_column name, p_since timestamptz, p_until timestamptz, inout before bigint, out after bigint)
  language plpgsql stable set search_path = pawl, pg_temp
as $$
declare
  c_disorder constant interval := interval '1 min';
begin
  before := least(coalesce(before, 9223372036854775807), pawl.id_at(p_table, p_column, p_until + c_disorder));
  after := coalesce(pawl.id_at(p_table, p_column, p_since - c_disorder) - 1, -9223372036854775808);
end
$$;

-- Raises when a page is out of range.
create or replace function pawl.list_check (p_limit integer, p_rows integer, p_errcode text default 'QU001')
  returns void
  language plpgsql immutable
as $$
begin
  if (p_limit between 1 and 1000 and p_rows between 1 and 1000000) is not true then
    raise exception 'limit must be from 1 to 1000 and rows from 1 to 1000000, got % and %',
      coalesce(p_limit::text, 'null'), coalesce(p_rows::text, 'null') using errcode = p_errcode;
  end if;
end
$$;
