-- respond.sql - responses (signals) to processes: stored, merged into the state, and the process resumed, once each.
--
-- Invariants
--   1. One response per process, name and key. The same key again changes nothing.
--   2. A response is merged into the state when it arrives, whatever the process does then: state || payload, or {name: payload} if the
--      payload is no object. Responses of one process are merged in the order of their numbers.
--   3. A process that waits for it is resumed by the response that completes its wait, in the same transaction. pawl.process_write
--      suspends a process only if no wait is complete, under the same lock, so a response that arrives before is seen there.
-- Lock order: process rows by id, then rows of pawl.delayed by id. A process's row is the lock of its responses (S8): only functions
-- here take it, for the length of their transaction.
-- Errors: QP001 an argument is out of range. QP003 the process is unknown. QP004 the state would be too large. QP008 the key has another payload.

-- Did an operator ask for its cancellation with compensation?
create or replace function pawl.process_is_canceled (p_id bigint)
  returns boolean
  language sql stable
as $$
  select exists (select from pawl.process_response r where r.id = p_id and r.name = '$cancel')
$$;

-- Is a command a process that is being compensated, or is to be? In the troubleshooting queue an operator decides about it.
create or replace function pawl.process_is_compensated (p_id bigint)
  returns boolean
  language plpgsql stable
as $$
begin
  return exists (
      select from pawl.process p
      where p.id = p_id and (p.phase = 'compensating' or p.phase = 'forward' and pawl.process_is_canceled(p_id)))
    and not exists (select from pawl.tsq t where t.id = p_id) and not exists (select from pawl.outcome o where o.id = p_id);
end
$$;

-- How many responses of this name a process has; "*": of any. By index: one that waits for a name does not read the others.
create or replace function pawl.process_response_count (p_id bigint, p_name text)
  returns bigint
  language plpgsql stable
  set plan = keyed_cached
as $$
begin
  if p_name = '*' then
    return (select count(*) from pawl.process_response r where r.id = p_id);
  end if;
  return (select count(*) from pawl.process_response r where r.id = p_id and r.name = p_name);
end
$$;

-- Is one of the waits of a process complete? A cancellation completes all, unless it is being compensated already.
create or replace function pawl.process_is_met (p_id bigint, p_waits jsonb)
  returns boolean
  language sql stable
as $$
  select exists (
    select from pawl.process p where p.id = p_id and p.phase = 'forward' and pawl.process_is_canceled(p_id)) or exists (
    select from jsonb_each_text(p_waits) w (name, needed)
    where w.needed::bigint <= pawl.process_response_count(p_id, w.name))
$$;

-- Queue processes that wait; those that do not wait any more are left alone. Returns those that were queued.
create or replace function pawl.process_resume (p_ids bigint[])
  returns bigint[]
  language plpgsql
as $$
declare
  v_ids bigint[] := array(select d.id from pawl.delayed d where d.id = any (p_ids) order by d.id for update);
begin
  if cardinality(v_ids) > 0 then
    perform pawl.requeue_delayed(v_ids);
  end if;
  return v_ids;
end
$$;

-- A row per item. p_merge false: the state stays as it is (outcomes of commands, which their step records). verdict: RESUMED (it completed a wait), STORED (the process does not wait for it, or for more), REPEATED (the key is known, with
-- the same payload), KEY_REUSED (the key is known with another payload; nothing was stored), LATE (the process has ended; its state was patched),
-- NOT_FOUND, TOO_LARGE (the state would exceed its limit, or the responses theirs; nothing was stored).
create or replace function pawl.process_respond (
  p_ids bigint[], p_names text[], p_keys text[], p_payloads jsonb[], p_actor text, p_merge boolean default true)
  returns table (ord integer, verdict text)
  language plpgsql security definer set search_path = pawl, pg_temp
  set plan = keyed_cached
as $$
#variable_conflict use_column
declare
  c_state_max constant integer := 1024 * 1024;
  c_count_max constant integer := 10000; -- of the responses from outside
  c_bytes_max constant integer := 8 * 1024 * 1024;
  v_now timestamptz := pawl.now();
  v_count integer := cardinality(p_ids);
  v_held bigint[];
  v_large bigint[];
  v_stored integer[]; -- items that are new
  v_resumed bigint[];
begin
  perform pawl.array_check('ids', p_ids, v_count, 'QP001'), pawl.array_check('names', p_names, v_count, 'QP001'),
          pawl.array_check('keys', p_keys, v_count, 'QP001'), pawl.array_check('payloads', p_payloads, v_count, 'QP001');
  if exists (select from unnest(p_names) n where (n ~ '^[$~A-Za-z0-9][A-Za-z0-9_.:~\[\]-]*$' and char_length(n) <= 400) is not true) then
    raise exception 'name must be 1 to 100 letters, digits, "_", ".", ":" or "-", beginning with a letter or digit' using errcode = 'QP001';
  end if;
  if exists (select from unnest(p_keys) k where (char_length(k) between 1 and 200) is not true) then
    raise exception 'key must have 1 to 200 characters' using errcode = 'QP001';
  end if;
  v_held := array(select p.id from pawl.process p where p.id = any (p_ids) order by p.id for update);
  -- Under the locks, in a snapshot that sees all responses stored before.
  v_large := array(
    select u.id
    from (select u.id, count(*) as count, sum(pawl.json_bytes(u.payload)) as bytes
          from unnest(p_ids, p_payloads) u (id, payload) where u.id = any (v_held) and p_merge group by u.id) u
    cross join lateral (
      select pawl.json_bytes(p.state) as bytes, p.state, p.response_count, p.response_bytes from pawl.process p where p.id = u.id limit 1) p
    where u.count + p.response_count > c_count_max or u.bytes + p.response_bytes > c_bytes_max
       or u.bytes + p.bytes > c_state_max and ( -- merged, because a response may replace what an earlier one has set
         select pawl.json_bytes(p.state || jsonb_object_agg(e.key, e.value order by i.ord))
         from unnest(p_ids, p_names, p_payloads) with ordinality i (id, name, payload, ord)
         cross join lateral jsonb_each(case jsonb_typeof(i.payload) when 'object' then i.payload
                                       else jsonb_build_object(i.name, coalesce(i.payload, 'null')) end) e (key, value)
         where i.id = u.id) > c_state_max);
  v_stored := array(
    select i.ord::integer
    from (select distinct on (u.id, u.name, u.key) u.ord, u.id, u.name, u.key
          from unnest(p_ids, p_names, p_keys) with ordinality u (id, name, key, ord)
          where u.id = any (v_held) and u.id <> all (v_large)
          order by u.id, u.name, u.key, u.ord) i
    where not exists (select from pawl.process_response r where r.id = i.id and r.name = i.name and r.key = i.key));
  if cardinality(v_stored) > 0 then
    -- Queued before the responses are inserted, so that their rows say which of them did it, and the process's row is updated once.
    v_resumed := pawl.process_resume(array(
      select p.id from pawl.process p
      where p.id = any (v_held) and p.wait is not null and (
        p.phase = 'forward' and (pawl.process_is_canceled(p.id) or exists (
          select from unnest(p_ids, p_names) with ordinality n (id, name, ord)
          where n.id = p.id and n.name = '$cancel' and n.ord = any (v_stored)))
        or exists (
          select from jsonb_each_text(p.waits) w (name, needed)
          where w.needed::bigint <= pawl.process_response_count(p.id, w.name) + (
              select count(*) from unnest(p_ids, p_names) with ordinality n (id, name, ord)
              where n.id = p.id and (n.name = w.name or w.name = '*') and n.ord = any (v_stored))))
      order by p.id));
    with item as (
      select u.ord, u.id, u.name, u.key, coalesce(u.payload, 'null') as payload,
             case when u.id = any (v_resumed) then u.ord = max(u.ord) over (partition by u.id) end as resumed
      from unnest(p_ids, p_names, p_keys, p_payloads) with ordinality u (id, name, key, payload, ord)
      where u.ord = any (v_stored)
    ), stored as (
      insert into pawl.process_response (id, name, key, number, payload, at, actor, met, resumed)
      select i.id, i.name, i.key, nextval('pawl.response_seq'), i.payload, v_now, p_actor,
             (select case when i.name ~ '^[$]reply[.]' then substr(i.name, 8) else p.step end
              from pawl.process p where p.id = i.id and (p.waits ?| array[i.name, '*'] or i.resumed)), i.resumed
      from (select * from item order by item.ord) i
      returning id, name, key, payload, number
    ), patch as (
      select s.id, coalesce(jsonb_object_agg(m.key, m.value order by s.number) filter (where m.key is not null), '{}') as patch,
             count(distinct s.number) as responses, sum(octet_length(s.payload::text)) filter (where m.is_first) as bytes
      from stored s
      left join lateral (
        select e.key, e.value, row_number() over () = 1 as is_first
        from jsonb_each(case jsonb_typeof(s.payload) when 'object' then s.payload else jsonb_build_object(s.name, s.payload) end) e (key, value)
      ) m on true
      where p_merge
      group by s.id
    )
    update pawl.process p set state = p.state || a.patch, version = p.version + a.responses,
      response_count = p.response_count + a.responses, response_bytes = p.response_bytes + coalesce(a.bytes, 0),
      wait = case when p.id = any (v_resumed) then null else p.wait end, waits = case when p.id = any (v_resumed) then null else p.waits end
    from patch a where p.id = a.id;
    if not p_merge then
      update pawl.process p set wait = null, waits = null where p.id = any (v_resumed);
    end if;
  end if;
  return query
    select u.ord::integer,
           case when p.id is null then 'NOT_FOUND'
                when u.id = any (v_large) then 'TOO_LARGE'
                when u.ord <> all (v_stored) then
                  case when r.payload = coalesce(u.payload, 'null') then 'REPEATED' else 'KEY_REUSED' end
                when u.id = any (v_resumed) then 'RESUMED'
                when o.id is not null then 'LATE'
                else 'STORED' end
    from unnest(p_ids, p_names, p_keys, p_payloads) with ordinality u (id, name, key, payload, ord)
    left join lateral (select p.id from pawl.process p where p.id = u.id limit 1) p on true
    left join lateral (select o.id from pawl.outcome o where o.id = u.id limit 1) o on true
    left join lateral (
      select r.payload from pawl.process_response r
      where r.id = u.id and r.name = u.name and r.key = u.key and u.ord <> all (v_stored) limit 1) r on true
    order by u.ord;
end
$$;

-- The outcomes of commands and children that a process waits for, as responses of one name; the key is the command's. A result that is too
-- large to be a step's is left out, and the reply says so: the step fails, but is known to have happened.
create or replace function pawl.process_reply (p_id bigint, p_name text, p_replies jsonb[])
  returns void
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
declare
  c_result_max constant integer := 1024 * 1024;
begin
  perform from pawl.process_respond(
    array_fill(p_id, array[cardinality(p_replies)]), array_fill(p_name, array[cardinality(p_replies)]),
    array(select r ->> 'command_id' from unnest(p_replies) with ordinality u (r, n) order by u.n),
    array(
      select case when pg_column_size(r) < c_result_max / 100 or pawl.json_bytes(r) <= c_result_max then r
                  else r || jsonb_build_object('result', null, 'error', format('its result has more than %s bytes', c_result_max)) end
      from unnest(p_replies) with ordinality u (r, n) order by u.n),
    'reply', p_merge => false);
end
$$;

-- One response, from an application. Returns the verdict; a process that is unknown raises.
create or replace function pawl.signal (
  p_process_id uuid, p_name text, p_payload jsonb default '{}', p_key text default null, p_domain text default null,
  p_actor text default session_user)
  returns text
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
declare
  v_id bigint := pawl.process_number(p_process_id, p_domain);
  v_verdict text;
begin
  if (p_name ~ '^[A-Za-z0-9][A-Za-z0-9_.:-]{0,99}$') is not true then
    raise exception 'name must be 1 to 100 letters, digits, "_", ".", ":" or "-", beginning with a letter or digit, got %',
      coalesce('"' || left(p_name, 120) || '"', 'null') using errcode = 'QP001';
  end if;
  if v_id is null then
    raise exception 'process % not found%', p_process_id, coalesce(' in domain ' || p_domain, '') using errcode = 'QP003';
  end if;
  select r.verdict into strict v_verdict
  from pawl.process_respond(array[v_id], array[p_name], array[coalesce(p_key, pawl.uuid7()::text)], array[p_payload], pawl.operator_name(p_actor)) r;
  if v_verdict = 'KEY_REUSED' then
    raise exception 'response "%" of process % is stored under key "%" with another payload', p_name, p_process_id, p_key using errcode = 'QP008';
  end if;
  if v_verdict = 'TOO_LARGE' then
    raise exception 'the state of process % would exceed 1048576 bytes, or its responses 8388608 bytes or 10000', p_process_id
      using errcode = 'QP004';
  end if;
  return v_verdict;
end
$$;
