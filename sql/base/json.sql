-- json.sql - the guard of functions that store JSON of their callers.
--
-- A number such as 1e131071 takes a few bytes in jsonb and 131072 as text, so a value of some kilobytes can have more than a gigabyte as
-- text, which is what PostgreSQL can return at most. Stored, it would break whatever reads it: replies, listings, the audit.
-- Errors: the SQLSTATE that the caller names.

-- The length as text. Numbers are measured one by one before all of it is written out; above 16 MiB it is only known to be more.
create or replace function pawl.json_bytes (p_value jsonb)
  returns bigint
  language plpgsql immutable set search_path = pg_catalog, pg_temp
as $$
declare
  c_max constant integer := 16 * 1024 * 1024;
  v_bytes bigint := 0;
  v_number jsonb;
begin
  -- Below 1000 bytes there are at most 83 numbers, of at most 147456 digits. An array, because its elements are never compressed.
  if pg_column_size(array[p_value]) >= 1000 then
    -- By way of an array: jsonb_path_query() returns n numbers in time that grows with the square of n.
    for v_number in
      select e.value from jsonb_array_elements(jsonb_path_query_array(p_value, 'strict $.** ? (@.type() == "number")')) e (value)
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

-- For listings: a value of more than 16 MiB as text, which an earlier version has stored, as {"truncated": true, "stored_bytes": n}. One
-- such value must not keep what is beside it from being read.
create or replace function pawl.json_shown (p_value jsonb)
  returns jsonb
  language plpgsql immutable set search_path = pg_catalog, pg_temp
as $$
declare
  v_stored integer := pg_column_size(array[p_value]);
begin
  if v_stored < 1000 or pawl.json_bytes(p_value) <= 16 * 1024 * 1024 then
    return p_value;
  end if;
  return jsonb_build_object('truncated', true, 'stored_bytes', v_stored);
end
$$;

-- Raises when one of these has more than 16 MiB as text. Values below 1000 bytes cannot, and are not measured.
create or replace function pawl.json_check (p_name text, p_values jsonb[], p_errcode text)
  returns void
  language plpgsql immutable set search_path = pg_catalog, pg_temp
as $$
declare
  c_max constant integer := 16 * 1024 * 1024;
begin
  if exists (select from unnest(p_values) v where pg_column_size(v) >= 1000 and pawl.json_bytes(v) > c_max) then
    raise exception '% must have at most % bytes as text, got more', p_name, c_max using errcode = p_errcode;
  end if;
end
$$;
