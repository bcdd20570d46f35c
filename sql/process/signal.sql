-- signal.sql - responses from applications: one, or many in one call. What a response does: see respond.sql.
--
-- Lock order: as pawl.process_respond; of several processes, those that other transactions have locked are skipped (pawl.process_lock).
-- Errors: QP001 an argument is out of range. One response also: QP003 the process is unknown. QP004 the state would be too large. QP008 the key has
-- another payload. QU005 several domains have the process.

-- One response, from an application. A process that is unknown raises. first: the verdict of the first sender of this
-- response. step: the wait that it answers, as it is shown ("approval", "approval[2]"): no other wait takes it; null: any of its name.
-- expected: of a response that was STORED_UNEXPECTED then, the names that the waits of the definition take.
-- domain: of the bus. p_offers: free handlers of the caller for the process, if it is resumed (bus/resume_start.sql); started: the process, if it has a lease with
-- one of their tokens.
create or replace function pawl.signal_one (
  p_process_id uuid, p_name text, p_payload jsonb, p_key text, p_domain text, p_actor text, p_step text default null, p_offers jsonb default null,
  out verdict text, out first text, out expected text[], out domain text, out started jsonb)
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
#variable_conflict use_column
declare
  v_id bigint := pawl.process_number(p_process_id, p_domain);
begin
  perform pawl.name_check('name', p_name, 100, 'QP001');
  if v_id is null then
    raise exception 'process % not found%', p_process_id, coalesce(' in domain ' || p_domain, '') using errcode = 'QP003';
  end if;
  perform pawl.offers_set(p_offers) where p_offers is not null;
  select r.verdict, r.first, pawl.definition_responses(r.unexpected_in, (select s.step from pawl.steps_read(array[v_id], array[p_step]) s)),
         (select n.name from pawl.process p join pawl.domain_name n on n.id = p.domain_id where p.id = v_id limit 1) -- a domain may have several rows
  into strict verdict, first, expected, domain
  from pawl.process_respond(array[v_id], array[p_name], array[coalesce(p_key, pawl.uuid7()::text)], array[p_payload], pawl.operator_name(p_actor),
                            p_steps => array[p_step]) r;
  if verdict = 'KEY_REUSED' then
    raise exception 'response "%" of process % is stored under key "%" with another payload or step', p_name, p_process_id, p_key using errcode = 'QP008';
  end if;
  if verdict = 'TOO_LARGE' then
    raise exception 'the state of process % would exceed 1048576 bytes, or its responses 8388608 bytes or 10000', p_process_id
      using errcode = 'QP004';
  end if;
  if p_offers is not null then
    started := pawl.resume_started(array[v_id], p_offers);
  end if;
end
$$;

-- The same in one word.
create or replace function pawl.signal (
  p_process_id uuid, p_name text, p_payload jsonb default '{}', p_key text default null, p_domain text default null,
  p_actor text default session_user, p_step text default null)
  returns text
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
begin
  return (pawl.signal_one(p_process_id, p_name, p_payload, p_key, p_domain, p_actor, p_step)).verdict;
end
$$;

-- Raises unless the arrays are those of one call.
create or replace function pawl.signals_guard (
  p_process_ids uuid[], p_names text[], p_payloads jsonb[], p_keys text[], p_domains text[], p_steps text[])
  returns void
  language plpgsql
as $$
declare
  c_count_max constant integer := 1000;
  v_count integer := cardinality(p_process_ids);
begin
  perform pawl.array_check('process_ids', p_process_ids, v_count, 'QP001'), pawl.array_check('names', p_names, v_count, 'QP001'),
          pawl.array_check('payloads', p_payloads, v_count, 'QP001'), pawl.array_check('keys', p_keys, v_count, 'QP001'),
          pawl.array_check('domains', p_domains, v_count, 'QP001', true), pawl.array_check('steps', p_steps, v_count, 'QP001', true);
  if v_count > c_count_max then
    raise exception 'at most % responses can be sent in one call, got %', c_count_max, v_count using errcode = 'QP001';
  end if;
end
$$;

-- Why an item is no response that an application may send, by what pawl.signal would raise; null: it is one.
create or replace function pawl.signal_refusal (p_id bigint, p_process_id uuid, p_name text, p_payload jsonb, p_key text, p_step text)
  returns text
  language plpgsql stable
as $$
begin
  if p_process_id is null or p_payload is null then
    return case when p_process_id is null then 'process_id' else 'payload' end || ' must not be null';
  end if;
  perform pawl.name_check('name', p_name, 100, 'QP001'), pawl.response_key_check(p_key);
  perform pawl.steps_read(array[p_id], array[p_step]) where p_step is not null;
  return null;
exception when sqlstate 'QP001' then
  return sqlerrm;
end
$$;

-- Many responses in one call, which takes a fraction of the time of as many calls of pawl.signal. A row per item. verdict: as pawl.signal; where that
-- raises: INVALID (refusal says why), NOT_FOUND, AMBIGUOUS (several domains have the process: name one of them), KEY_REUSED, TOO_LARGE (each item of the
-- process); and LOCKED (see pawl.process_lock; nothing was stored, and the same item may be sent again). A NULL domain matches any. steps: as in
-- pawl.signal_one; null: none is named.
create or replace function pawl.process_signal (
  p_process_ids uuid[], p_names text[], p_payloads jsonb[], p_keys text[], p_domains text[] default null, p_actor text default session_user,
  p_steps text[] default null)
  returns table (ord integer, verdict text, refusal text)
  language plpgsql security definer set search_path = pawl, pg_temp
  set plan = keyed_cached
as $$
#variable_conflict use_column
declare
  v_ids bigint[];
  v_ambiguous boolean[];
  v_locked bigint[]; -- by other transactions
  v_item record; -- arrays: process numbers, null where nothing is sent; why, as verdict and in words; keys and steps of what is sent
begin
  perform pawl.signals_guard(p_process_ids, p_names, p_payloads, p_keys, p_domains, p_steps);
  select array_agg(f.id order by f.ord), array_agg(f.domains is not null order by f.ord) into v_ids, v_ambiguous
  from pawl.commands_find(p_process_ids, pawl.process_domains(p_process_ids, p_domains)) f;
  v_locked := pawl.process_lock(v_ids);
  select array_agg(case when r.refusal is null and u.id <> all (v_locked) then u.id end order by u.ord) as ids, array_agg(r.refusal order by u.ord) as refusals,
         array_agg(case when r.refusal is not null then 'INVALID' when u.is_ambiguous then 'AMBIGUOUS' when u.id = any (v_locked) then 'LOCKED' end order by u.ord)
           as verdicts,
         array_agg(case when r.refusal is null then u.key else '-' end order by u.ord) as keys,
         array_agg(case when r.refusal is null then u.step end order by u.ord) as steps
  into strict v_item
  from unnest(v_ids, v_ambiguous, p_process_ids, p_names, p_payloads, p_keys, p_steps)
    with ordinality u (id, is_ambiguous, process_id, name, payload, key, step, ord)
  cross join lateral pawl.signal_refusal(u.id, u.process_id, u.name, u.payload, u.key, u.step) r (refusal);
  return query
    select r.ord, coalesce(r.refused, r.verdict), r.refusal -- a process without a number is NOT_FOUND; all are in the order of the items
    from rows from (
      pawl.process_respond(coalesce(v_item.ids, '{}'), p_names, coalesce(v_item.keys, '{}'), p_payloads, pawl.operator_name(p_actor), p_steps => v_item.steps),
      unnest(v_item.verdicts), unnest(v_item.refusals)) r (ord, verdict, first, unexpected_in, refused, refusal);
end
$$;
