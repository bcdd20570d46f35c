-- domain.sql - domains as numbers.
--
-- A domain's number follows from its name, and any number of transactions may write the row of a new one at the same time. So the
-- first send to a domain, in a transaction that stays open, makes no other sender wait, and one that is rolled back uses nothing up.
-- Numbers below 32768 are those of domains older than this rule. Lock order: none.
-- Errors: QU001 a name is malformed, or two domains have the same number (see domain_id).

-- Null: nothing was ever sent there.
create or replace function pawl.domain_find (p_name text)
  returns integer
  language plpgsql stable security definer set search_path = pawl, pg_temp
as $$
declare
  v_id integer;
  v_other text;
begin
  select d.id into v_id from pawl.domain_name d where d.name = p_name order by d.id limit 1;
  if not found then
    perform pawl.name_check('domain', p_name, 63);
  end if;
  select d.name into v_other from pawl.domain_name d where d.id = v_id and d.name <> p_name limit 1;
  if found then
    raise exception 'domains "%" and "%" have the same number: use another name', p_name, v_other using errcode = 'QU001';
  end if;
  return v_id;
end
$$;

-- A number from 2^30 to 2^31 - 1.
create or replace function pawl.domain_number (p_name text, p_try integer)
  returns integer
  language sql immutable
as $$
  select ('x' || substr(encode(sha256(convert_to(p_name || repeat('#', p_try), 'UTF8')), 'hex'), 1, 8))::bit(32)::integer
           & 1073741823 | 1073741824
$$;

-- A new one is written on the way. A number that another domain has is passed over; only two domains that are first sent to in
-- transactions open at the same time can meet on one, with a probability of 2^-30, and then domain_find refuses both.
create or replace function pawl.domain_id (p_name text)
  returns integer
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
declare
  v_id integer := pawl.domain_find(p_name);
begin
  if v_id is not null then
    return v_id;
  end if;
  for v_try in 0 .. 100 loop
    v_id := pawl.domain_number(p_name, v_try);
    -- Its own row may have been committed since domain_find read the table; then the number is right.
    exit when not exists (select from pawl.domain_name d where d.id = v_id and d.name <> p_name);
  end loop;
  insert into pawl.domain_name (id, name) values (v_id, p_name);
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
