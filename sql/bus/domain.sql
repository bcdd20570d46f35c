-- domain.sql - names of domains as small numbers.
-- Errors: QU001 a name is malformed.

-- Null: nothing was ever sent there.
create or replace function pawl.domain_find (p_name text)
  returns smallint
  language plpgsql stable security definer set search_path = pawl, pg_temp
as $$
declare
  v_id smallint;
begin
  select d.id into v_id from pawl.domain d where d.name = p_name;
  if not found and (p_name ~ '^[A-Za-z0-9][A-Za-z0-9_.:-]{0,62}$') is not true then
    raise exception 'domain must be 1 to 63 letters, digits, "_", ".", ":" or "-", beginning with a letter or digit'
      using errcode = 'QU001';
  end if;
  return v_id;
end
$$;

-- A new one is made on the way; only for those who send, because there are 32,767 numbers and none comes back.
create or replace function pawl.domain_id (p_name text)
  returns smallint
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
declare
  v_id smallint := pawl.domain_find(p_name);
begin
  if v_id is not null then
    return v_id;
  end if;
  insert into pawl.domain (name) values (p_name) on conflict (name) do nothing;
  -- The winner of a race may have committed after our snapshot: this statement has a new one.
  select d.id into strict v_id from pawl.domain d where d.name = p_name;
  return v_id;
end
$$;

-- An id that grows with time (UUID version 7), so that index writes stay on a few warm pages.
create or replace function pawl.uuid7 ()
  returns uuid
  language sql volatile
as $$
  select encode(
    set_bit(set_bit(
      overlay(uuid_send(gen_random_uuid())
        placing substring(int8send((extract(epoch from clock_timestamp()) * 1000)::bigint) from 3)
        from 1 for 6),
      52, 1), 53, 1), 'hex')::uuid
$$;
