-- key.sql - API keys: made, listed, revoked, found by the hash of their token.
-- Invariant: the token itself never reaches the database.
-- Lock order: one row at a time.
-- Errors: none of its own; a name in use gives null.

-- The new key's id; null: a live key has this name already. An expired one is dead: it is revoked, and its name is free.
-- p_ttl_ms null: never expires.
create or replace function pawl.key_create (p_name text, p_hash bytea, p_scopes text[], p_ttl_ms bigint)
  returns bigint
  language sql security definer set search_path = pawl, pg_temp
as $$
  update pawl.api_key k
  set revoked_at = t.now
  from pawl.now() as t (now)
  where k.name = p_name and k.revoked_at is null and k.expires_at <= t.now;

  insert into pawl.api_key (name, hash, scopes, created_at, expires_at)
  select p_name, p_hash, p_scopes, t.now, t.now + p_ttl_ms * interval '1 ms'
  from pawl.now() as t (now)
  on conflict (name) where revoked_at is null do nothing
  returning id
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

-- Newest first.
create or replace function pawl.key_list (p_limit integer)
  returns table (id bigint, name text, scopes text, created_at bigint, expires_at bigint, revoked_at bigint)
  language sql security definer set search_path = pawl, pg_temp
as $$
  select k.id, k.name, array_to_string(k.scopes, ','), pawl.micros(k.created_at), pawl.micros(k.expires_at),
         pawl.micros(k.revoked_at)
  from pawl.api_key k
  order by k.id desc
  limit p_limit
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
