-- send_key.sql - keys of senders: texts that become ids, and that count in all domains.
--
-- An id is unique in its domain: the same id in two domains is two commands. A key names one request of a sender. So a command
-- that is sent under a key is refused if the key has been used in another domain (ADR 37). Commands and processes are apart: the order 17 may be a
-- process and a command.
-- Locks: a row of pawl.send_lock per key until the end of the transaction, in the order of the keys. Its holder decides; the next sender sees what was
-- committed. No advisory lock, which every login could take.
-- Errors: QU001 a key is empty or too long, or differs from the id.

-- The id that a key becomes: itself if it is a UUID, else a hash of name and key (UUID version 8). The name is that of a role or of an API key; HTTP
-- computes the same hash (api/key_header.c). It is part of the interface: with another one, repeats would be sent a second time.
create or replace function pawl.key (p_key text, p_name text default session_user)
  returns uuid
  language plpgsql stable
as $$
declare
  c_bytes_max constant integer := 200;
  v_hash bytea;
begin
  if octet_length(p_key) not between 1 and c_bytes_max then
    raise exception 'key must have 1 to % bytes, got %', c_bytes_max, octet_length(p_key) using errcode = 'QU001';
  end if;
  if p_name is null and p_key is not null then
    raise exception 'name must not be null' using errcode = 'QU001';
  end if;
  if p_key ~* '^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$' then
    return p_key::uuid;
  end if;
  v_hash := substr(sha256('\x7061776c206b657900' /* pawl key, NUL */ || convert_to(p_name, 'UTF8') || '\x00' || convert_to(p_key, 'UTF8')), 1, 16);
  v_hash := set_byte(set_byte(v_hash, 6, get_byte(v_hash, 6) & 15 | 128), 8, get_byte(v_hash, 8) & 63 | 128);
  return encode(v_hash, 'hex')::uuid;
end
$$;

-- The id of one command or process: of the key, or the one that is given, if any. p_field: what the message calls the id.
create or replace function pawl.key_or_id (p_key text, p_id uuid, p_field text)
  returns uuid
  language plpgsql stable
as $$
declare
  v_id uuid := pawl.key(p_key);
begin
  if v_id <> p_id then
    raise exception 'key and % differ: give one of them', p_field using errcode = 'QU001';
  end if;
  return coalesce(v_id, p_id);
end
$$;

-- The same for several: of the keys, or of the ids where there is no key.
create or replace function pawl.keys_or_ids (p_keys text[], p_ids uuid[], p_field text)
  returns uuid[]
  language plpgsql stable
as $$
begin
  if p_keys is null then
    return p_ids;
  end if;
  perform pawl.array_check('keys', p_keys, cardinality(p_keys), 'QU001'), pawl.array_check(p_field, p_ids, cardinality(p_keys), 'QU001', true);
  return array(select pawl.key_or_id(u.key, u.id, p_field) from unnest(p_keys, p_ids) with ordinality u (key, id, n) order by u.n);
end
$$;

-- Which of them are keys; null: none can be.
create or replace function pawl.keys_given (p_keys text[])
  returns boolean[]
  language sql immutable
as $$
  select case when p_keys is not null then array(select k is not null from unnest(p_keys) with ordinality u (k, n) order by u.n) end
$$;

-- The domain in which a key was used before, if not in this one; commands and processes apart. Null: in none.
create or replace function pawl.key_elsewhere (p_domain text, p_id uuid)
  returns text
  language plpgsql stable
  set plan = keyed_cached
as $$
begin
  return (
    select nullif(n.name, p_domain)
    from (select c.domain_id from pawl.command c where c.command_id = p_id
          union all
          select k.domain_id from pawl.kept_key k where k.command_id = p_id) u
    cross join lateral (select n.name from pawl.domain_name n where n.id = u.domain_id limit 1) n
    where starts_with(n.name, 'process:') = starts_with(p_domain, 'process:')
    order by n.name = p_domain desc, n.name
    limit 1);
end
$$;

-- Until the end of the transaction: another one that inserts the same key waits for this one, although the row is deleted again.
create or replace function pawl.send_keys_lock (p_ids uuid[])
  returns void
  language plpgsql
  set plan = keyed_cached
as $$
begin
  insert into pawl.send_lock (id) select u.id from unnest(p_ids) u (id) order by u.id;
  delete from pawl.send_lock l where l.id = any (p_ids);
end
$$;

-- The same, waiting for so long for each. False: another transaction has one of them, and none is locked.
create or replace function pawl.send_keys_try (p_ids uuid[], p_wait_ms integer)
  returns boolean
  language plpgsql
as $$
declare
  v_before text := current_setting('lock_timeout');
begin
  perform set_config('lock_timeout', p_wait_ms::text, true);
  perform pawl.send_keys_lock(p_ids);
  perform set_config('lock_timeout', v_before, true);
  return true;
exception when lock_not_available then
  return false; -- and the setting is as it was
end
$$;

-- Lock these keys until the end of the transaction, in their order. Returns those that are not locked: none, or, with p_nowait, which waits 10 ms for
-- the first five that another transaction has, those, and all behind the first 500. They are tried again.
create or replace function pawl.send_keys_hold (p_nowait boolean, p_ids uuid[])
  returns uuid[]
  language plpgsql
as $$
declare
  c_keys_max constant integer := 500;
  v_aside uuid[] := '{}'::uuid[];
  v_waits integer := 0;
  v_id uuid;
begin
  if p_nowait is not true then
    perform pawl.send_keys_lock(p_ids);
    return v_aside;
  end if;
  v_aside := p_ids[c_keys_max + 1:];
  p_ids := p_ids[:c_keys_max];
  if not pawl.send_keys_try(p_ids, 10) then
    foreach v_id in array p_ids loop
      if not pawl.send_keys_try(array[v_id], case when v_waits < 5 then 10 else 1 end) then
        v_waits := v_waits + 1;
        v_aside := v_aside || v_id;
      end if;
    end loop;
  end if;
  return v_aside;
end
$$;

-- Lock the keys of a send. Returns those that are not to be sent: used in another domain before, or, with p_nowait, being used by another transaction.
create or replace function pawl.send_keys (p_nowait boolean, p_domain text, p_ids uuid[], p_keyed boolean[])
  returns uuid[]
  language plpgsql
as $$
declare
  v_ids uuid[] := array(select distinct u.id from unnest(p_ids, p_keyed) u (id, keyed) where u.keyed order by u.id);
  v_aside uuid[] := pawl.send_keys_hold(p_nowait, v_ids);
begin
  -- In a new snapshot, which sees what the locks were waited for.
  return v_aside || array(select u.id from unnest(v_ids) u (id) where pawl.key_elsewhere(p_domain, u.id) is not null);
end
$$;
