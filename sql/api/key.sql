-- key.sql - API keys: made, listed, revoked, found by the hash of their token.
-- A key with a binding touches only domains and owners that its patterns have: bus/bound.sql and wallet/bound.sql.
-- Invariant: the token itself never reaches the database.
-- Lock order: one row at a time; key_used passes over rows that are locked.
-- Errors: PW003 an argument is missing or out of range; a name in use gives null.

-- Patterns of a binding: names, or prefixes with "*". Raises for one that no name can match.
create or replace function pawl.key_patterns_check (p_field text, p_patterns text[], p_most integer)
  returns void
  language plpgsql immutable
as $$
declare
  v_bad text;
begin
  if cardinality(p_patterns) > 20 then
    raise exception '% must be at most 20 patterns, got %', p_field, cardinality(p_patterns) using errcode = 'PW003';
  end if;
  select left(coalesce(u.pattern, 'null'), 80) into v_bad
  from unnest(p_patterns) u (pattern)
  where (octet_length(u.pattern) between 1 and p_most and u.pattern !~ '[[:cntrl:],]' and u.pattern !~ '[*].'
         and u.pattern !~ (case p_field when 'domains' then '^(process|telegram):|[^A-Za-z0-9_.:*-]' else '^@' end)) is not true
  limit 1;
  if found then
    raise exception '% must be names, or prefixes with "*" at their end, without commas, and not of the service itself, got "%"', p_field, v_bad using errcode = 'PW003';
  end if;
end
$$;

-- The new key's id; null: a live key has this name already. An expired one is dead: it is revoked, and its name is free.
-- p_ttl_ms null: never expires. p_domains and p_owners: the binding; both null: none; one of them null: nothing of that kind.
create or replace function pawl.key_create (
  p_name text, p_hash bytea, p_scopes text[], p_ttl_ms bigint, p_domains text[] default null, p_owners text[] default null,
  p_operator text default null, p_reason text default null)
  returns bigint
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
declare
  c_scopes constant text[] := array['read', 'send', 'work', 'process', 'post', 'mint', 'wallets', 'operate', 'rating', 'admin'];
  v_is_bound boolean := p_domains is not null or p_owners is not null;
  v_domains text[] := case when v_is_bound then coalesce(p_domains, '{}') end;
  v_owners text[] := case when v_is_bound then coalesce(p_owners, '{}') end;
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
  perform pawl.key_patterns_check('domains', v_domains, 64), pawl.key_patterns_check('owners', v_owners, 256);
  if v_is_bound and p_scopes && array['admin', 'rating'] then
    raise exception 'a key with the scope admin or rating cannot be bound to domains or owners: these scopes are about the whole service' using errcode = 'PW003';
  end if;
  if v_is_bound and cardinality(v_domains) + cardinality(v_owners) = 0 then
    raise exception 'domains or owners must have a pattern: a key that is bound to nothing may do nothing' using errcode = 'PW003';
  end if;
  update pawl.api_key k set revoked_at = v_now where k.name = p_name and k.revoked_at is null and k.expires_at <= v_now;
  insert into pawl.api_key (name, hash, scopes, domains, owners, created_at, created_by, expires_at)
  values (p_name, p_hash, p_scopes, v_domains, v_owners, v_now, pawl.operator_name(p_operator), v_now + p_ttl_ms * interval '1 ms')
  on conflict (name) where revoked_at is null do nothing
  returning id into v_id;
  if v_id is not null then
    perform pawl.control_add('key', p_name, 'create', p_operator, p_reason, jsonb_strip_nulls(jsonb_build_object(
      'id', v_id, 'scopes', to_jsonb(p_scopes), 'domains', to_jsonb(v_domains), 'owners', to_jsonb(v_owners), 'ttl_ms', p_ttl_ms)));
  end if;
  return v_id;
end
$$;

-- Is a use to be written? Not more often than every 5 minutes.
create or replace function pawl.key_is_idle (p_used_at timestamptz)
  returns boolean
  language sql stable
as $$
  select p_used_at is null or p_used_at < pawl.now() - interval '5 minutes'
$$;

-- The live key with this hash; none when it is unknown, revoked or expired. is_idle: its last use was written long ago, see key_used.
create or replace function pawl.key_find (p_hash bytea)
  returns table (id bigint, name text, scopes text, expires_at bigint, domains text, owners text, is_idle boolean)
  language sql security definer set search_path = pawl, pg_temp
as $$
  select k.id, k.name, array_to_string(k.scopes, ','), pawl.micros(k.expires_at), array_to_string(k.domains, ','), array_to_string(k.owners, ','),
         pawl.key_is_idle(k.used_at)
  from pawl.api_key k
  where k.hash = p_hash and k.revoked_at is null and (k.expires_at is null or k.expires_at > (select pawl.now()))
$$;

-- Keys have been used just now. Returns how many were written.
create or replace function pawl.key_used (p_ids bigint[])
  returns bigint
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
declare
  v_count bigint;
begin
  update pawl.api_key k
  set used_at = pawl.now()
  where k.id in (select u.id from pawl.api_key u where u.id = any (p_ids) and pawl.key_is_idle(u.used_at) order by u.id for no key update skip locked);
  get diagnostics v_count = row_count;
  return v_count;
end
$$;

-- Newest first, as many as p_limit (null: all) below the id p_before (null: from the newest).
create or replace function pawl.key_list (p_limit integer, p_before bigint default null)
  returns table (id bigint, name text, scopes text, created_at bigint, expires_at bigint, revoked_at bigint, domains text, owners text,
                 created_by text, used_at bigint)
  language sql security definer set search_path = pawl, pg_temp
as $$
  select k.id, k.name, array_to_string(k.scopes, ','), pawl.micros(k.created_at), pawl.micros(k.expires_at),
         pawl.micros(k.revoked_at), array_to_string(k.domains, ','), array_to_string(k.owners, ','), k.created_by, pawl.micros(k.used_at)
  from pawl.api_key k
  where p_before is null or k.id < p_before
  order by k.id desc
  limit greatest(p_limit, 0)
$$;

-- By id or by name; none when no live key is meant.
create or replace function pawl.key_revoke (p_id bigint, p_name text, p_operator text default null, p_reason text default null)
  returns table (id bigint, name text)
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
#variable_conflict use_column
begin
  update pawl.api_key k
  set revoked_at = pawl.now()
  where (k.id = p_id or k.name = p_name) and k.revoked_at is null
  returning k.id, k.name into key_revoke.id, key_revoke.name;
  if found then
    perform pawl.control_add('key', key_revoke.name, 'revoke', p_operator, p_reason, jsonb_build_object('id', key_revoke.id));
    return next;
  end if;
end
$$;
