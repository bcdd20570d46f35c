-- json.sql - the guard of functions that store JSON of their callers.
--
-- A number such as 1e131071 takes a few bytes in jsonb and 131072 as text, so a value of some kilobytes can have more
-- than a gigabyte as text, which is what PostgreSQL can return at most. Stored, it would break whatever reads it:
-- replies, listings, the audit. Errors: the SQLSTATE that the caller names.

-- The most bytes that a value may have as text: 16 MiB.
create or replace function pawl.json_max ()
  returns integer
  language sql immutable
as $$
  select 16 * 1024 * 1024
$$;

-- The length as text. Numbers are measured one by one before all of it is written out; above 16 MiB it is only known to
-- be more.
create or replace function pawl.json_bytes (p_value jsonb)
  returns bigint
  language plpgsql immutable set search_path = pg_catalog, pg_temp
as $$
declare
  c_max constant integer := pawl.json_max();
  v_bytes bigint := 0;
  v_number jsonb;
begin
  -- Below 1000 bytes there are at most 83 numbers, of at most 147456 digits. An array, because its elements are never
  -- compressed.
  if pg_column_size(array[p_value]) >= 1000 then
    -- By way of an array: jsonb_path_query() returns n numbers in time that grows with the square of n.
    for v_number in
      select e.value
      from jsonb_array_elements(jsonb_path_query_array(p_value, 'strict $.** ? (@.type() == "number")')) e (value)
    loop
      v_bytes := v_bytes + octet_length(v_number::text);
      if v_bytes > c_max then
        return v_bytes;
      end if;
    end loop;
  end if;
  return octet_length(p_value::text);
end
$$;

-- Has it more than 16 MiB as text? Values below 1000 bytes cannot, and are not measured.
create or replace function pawl.json_is_large (p_value jsonb)
  returns boolean
  language plpgsql immutable
as $$
begin
  return pg_catalog.pg_column_size(array[p_value]) >= 1000 and pawl.json_bytes(p_value) > pawl.json_max();
end
$$;

-- For listings: a value of more than 16 MiB as text, which an earlier version has stored, as {"truncated": true,
-- "stored_bytes": n}. One such value must not keep what is beside it from being read.
create or replace function pawl.json_shown (p_value jsonb)
  returns jsonb
  language plpgsql immutable set search_path = pg_catalog, pg_temp
as $$
begin
  if pawl.json_is_large(p_value) then
    return jsonb_build_object('truncated', true, 'stored_bytes', pg_column_size(array[p_value]));
  end if;
  return p_value;
end
$$;

-- Raises when one of these is.
create or replace function pawl.json_check (p_name text, p_values jsonb[], p_errcode text)
  returns void
  language plpgsql immutable set search_path = pg_catalog, pg_temp
as $$
begin
  -- An expression; the query below would be started. All of them together are as small as one that is not measured.
  if p_values is null or pg_column_size(p_values) < 1000 and pg_column_compression(p_values) is null then
    return;
  end if;
  if exists (select from unnest(p_values) v where pawl.json_is_large(v)) then
    raise exception '% must have at most % bytes as text, got more', p_name, pawl.json_max() using errcode = p_errcode;
  end if;
end
$$;
