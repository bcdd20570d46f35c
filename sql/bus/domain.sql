-- domain.sql - names of domains as small numbers.
-- Errors: QU001 a name is malformed.

create or replace function pawl.domain_id (p_name text)
  returns smallint
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
declare
  v_id smallint;
begin
  select d.id into v_id from pawl.domain d where d.name = p_name;
  if found then
    return v_id;
  end if;
  if p_name is null or p_name !~ '^[A-Za-z0-9][A-Za-z0-9_.:-]{0,62}$' then
    raise exception 'domain must be 1 to 63 letters, digits, "_", ".", ":" or "-", beginning with a letter or digit'
      using errcode = 'QU001';
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
