-- payload.sql - the size of payloads, and their hash.
-- Errors: QU001 a payload too large.

-- The length of a payload as text, which is what a worker gets. An error when it is above 16 MiB.
create or replace function pawl.payload_bytes (p_payload jsonb)
  returns integer
  language plpgsql immutable
as $$
begin
  return pawl.payload_limit(pawl.json_bytes(p_payload));
end
$$;

-- The same number, or an error.
create or replace function pawl.payload_limit (p_bytes bigint)
  returns integer
  language plpgsql immutable
as $$
begin
  if p_bytes > pawl.json_max() then
    raise exception 'payload must have at most % bytes as text, got more', pawl.json_max() using errcode = 'QU001';
  end if;
  return p_bytes;
end
$$;

-- Lengths of the payloads as text, null for those below 1000 bytes; null when all are. So claims need not measure.
-- p_checked: the caller has bounded the exponents of all numbers (bus/send.c does), so that the text itself can be measured,
-- which takes an eighth of the time.
create or replace function pawl.payloads_bytes (p_payloads jsonb[], p_checked boolean)
  returns integer[]
  language plpgsql immutable
as $$
begin
  if not exists (select from (select unnest(p_payloads) as p) u where pg_column_size(u.p) >= 1000 or octet_length(u.p::text) >= 1000) then
    return null;
  end if;
  return array(
    select nullif(greatest(case when p_checked then pawl.payload_limit(octet_length(u.p::text)) else pawl.payload_bytes(u.p) end, 999), 999)
    from unnest(p_payloads) with ordinality u (p, n) order by u.n);
end
$$;

-- What is retained of a payload when the command is deleted. One that is too large as text, which an earlier version has taken, has an empty
-- hash: no payload that can be sent is the same. PL/pgSQL, because the planner would write the constant argument of a SQL function out
-- before the CASE around it is decided.
create or replace function pawl.payload_hash (p_payload jsonb)
  returns bytea
  language plpgsql immutable
as $$
begin
  if pawl.json_is_large(p_payload) then
    return ''::bytea;
  end if;
  return sha256(convert_to(coalesce(p_payload, 'null')::text, 'UTF8'));
end
$$;
