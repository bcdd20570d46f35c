-- key.sql - API keys: made, listed, revoked, found by the hash of their token.
-- Invariant: the token itself never reaches the database.
-- Lock order: one row at a time.
-- Errors: PW003 an argument is missing or out of range; a name in use gives null.

-- The new key's id; null: a live key has this name already. An expired one is dead: it is revoked, and its name is free.
-- p_ttl_ms null: never expires.
create or replace function pawl.key_create (p_name text, p_hash bytea, p_scopes text[], p_ttl_ms bigint)
  returns bigint
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
declare
  c_scopes constant text[] := array['read', 'send', 'work', 'process', 'post', 'mint', 'wallets', 'operate', 'rating', 'admin'];
  v_now timestamptz := pawl.now();
  v_id bigint;
begin
  if (p_name ~ '^[a-z][a-z0-9_.-]{0,62}$' and octet_length(p_hash) = 32 and cardinality(p_scopes) > 0 and p_scopes <@ c_scopes) is not true then
    raise exception 'name must be 1 to 63 lower case letters, digits, "_", "." or "-", beginning with a letter, hash must have 32 bytes, and scopes must be of %',
      array_to_string(c_scopes, ', ') using errcode = 'PW003';
  end if;
  if p_ttl_ms not between 1 and 3153600000000 then
    raise exception 'ttl_ms must be from 1 to 3153600000000 (100 years), got %', p_ttl_ms using errcode = 'PW003';
  end if;
  update pawl.api_key k set revoked_at = v_now where k.name = p_name and k.revoked_at is null and k.expires_at <= v_now;
  insert into pawl.api_key (name, hash, scopes, created_at, expires_at)
  values (p_name, p_hash, p_scopes, v_now, v_now + p_ttl_ms * interval '1 ms')
  on conflict (name) where revoked_at is null do nothing
  returning id into v_id;
  return v_id;
end
$$;

-- The live key with this hash; none when it is unknown, revoked or expired.
create or replace function pawl.key_find (p_hash bytea)
  returns table (id bigint, name text, scopes text, expires_at bigint)
  language sql security definer set search_path = pawl, pg_temp
as $$
  select k.id, k.name, array_to_string(k.scopes, ','), pawl.micros(k.expires_at)
  from pawl.api_key k
  where k.hash = p_hash and k.revoked_at is null and (k.expires_at is null or k.expires_at > (select pawl.now()))
$$;

-- Newest first, as many as p_limit; null: all.
create or replace function pawl.key_list (p_limit integer)
  returns table (id bigint, name text, scopes text, created_at bigint, expires_at bigint, revoked_at bigint)
  language sql security definer set search_path = pawl, pg_temp
as $$
  select k.id, k.name, array_to_string(k.scopes, ','), pawl.micros(k.created_at), pawl.micros(k.expires_at),
         pawl.micros(k.revoked_at)
  from pawl.api_key k
  order by k.id desc
  limit greatest(p_limit, 0)
$$;

-- By id or by name; none when no live key is meant.
create or replace function pawl.key_revoke (p_id bigint, p_name text)
  returns table (id bigint, name text)
  language sql security definer set search_path = pawl, pg_temp
as $$
  update pawl.api_key k
  set revoked_at = pawl.now()
  where (k.id = p_id or k.name = p_name) and k.revoked_at is null
  returning k.id, k.name
$$;
