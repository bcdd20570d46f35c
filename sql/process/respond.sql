-- respond.sql - responses (signals) to processes: stored, merged into the state, and the process resumed, once each.
--
-- Invariants
--   1. One response per process, kind, name and key. The same key again changes nothing, also after the process has continued as new (continue.sql).
--   2. A response is merged into the state when it arrives, whatever the process does then: state || payload, or {name: payload} if the
--      payload is no object. Responses of one process are merged in the order of their numbers.
--   3. A process that waits for it is resumed by the response that completes its wait, in the same transaction. pawl.process_write
--      suspends a process only if no wait is complete, under the same lock, so a response that arrives before is seen there.
-- Lock order: process rows by id, then rows of pawl.delayed by id. A process's row is the lock of its responses (S8): what stores one, suspends the
-- process or decides about it holds it until the commit.
-- Errors: QP001 an argument is out of range.

-- The requests to cancel a process with compensation, by operators or by its deadline. In a FROM clause it is inlined; a scalar function with a
-- subquery never is, and would be planned again by every statement that calls it.
create or replace function pawl.process_cancellations (p_id bigint)
  returns table (key text)
  language sql stable
as $$
  select r.key from pawl.process_response r where r.id = p_id and r.kind = 'cancel'
$$;

-- Is there one?
create or replace function pawl.process_is_canceled (p_id bigint)
  returns boolean
  language plpgsql stable
  set plan = keyed_cached
as $$
begin
  return exists (select from pawl.process_cancellations(p_id));
end
$$;

-- Has it recorded or sent something, or does it wait, or is it in the troubleshooting queue? If not, nothing of it is to be compensated.
create or replace function pawl.process_has_begun (p_id bigint)
  returns boolean
  language plpgsql stable
as $$
begin
  return exists (select from pawl.process p where p.id = p_id and p.wait is not null) or exists (select from pawl.tsq t where t.id = p_id)
    or exists (select from pawl.process_step s where s.id = p_id) or exists (select from pawl.process_sent s where s.id = p_id);
end
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

-- How many such responses a process has, without those that name another step than p_to_step and p_to_item; kind any: of all. By index: one that waits for a
-- name does not read the others.
create or replace function pawl.process_response_count (
  p_id bigint, p_kind text, p_name text, p_item integer[], p_undo boolean, p_aside integer, p_to_step text, p_to_item integer[])
  returns bigint
  language plpgsql stable
  set plan = keyed_cached
as $$
begin
  if p_kind = 'any' then
    return (select count(*) from pawl.process_response r where r.id = p_id);
  end if;
  return (
    select count(*) from pawl.process_response r
    where r.id = p_id and r.kind = p_kind and r.name = p_name and r.item = p_item and r.undo = p_undo and r.aside = p_aside and not r.is_aside
      and (r.to_step is null or r.to_step = p_to_step and r.to_item = p_to_item));
end
$$;

-- Is one of the waits of a process complete? A cancellation completes all, unless it is being compensated already. Part of pawl.process_write, under
-- its planner settings.
create or replace function pawl.process_is_met (p_id bigint, p_waits jsonb)
  returns boolean
  language plpgsql stable
as $$
begin
  return exists (
    select from pawl.process p where p.id = p_id and p.phase = 'forward' and exists (select from pawl.process_cancellations(p.id))) or exists (
    select from pawl.waits_read(p_waits) w where w.count <= pawl.process_response_count(p_id, w.kind, w.name, w.item, w.undo, w.aside, w.to_step, w.to_item));
end
$$;

-- Queue processes that wait, or start them on handlers that the caller offers; those that do not wait any more are left alone. Returns those that are resumed.
create or replace function pawl.process_resume (p_ids bigint[])
  returns bigint[]
  language plpgsql
as $$
declare
  v_ids bigint[] := array(select d.id from pawl.delayed d where d.id = any (p_ids) order by d.id for update);
  v_queued bigint[] := v_ids; -- the others are started
begin
  if cardinality(v_ids) > 0 and nullif(current_setting('pawl.offers', true), '') is not null then
    v_queued := array(select i from unnest(v_ids) i where i <> all (pawl.resume_start(v_ids)));
  end if;
  if cardinality(v_queued) > 0 then
    perform pawl.requeue_delayed(v_queued);
  end if;
  return v_ids;
end
$$;

-- The response as a patch of the state.
create or replace function pawl.response_patch (p_name text, p_payload jsonb)
  returns jsonb
  language sql stable
as $$
  select case jsonb_typeof(p_payload) when 'object' then p_payload else jsonb_build_object(p_name, coalesce(p_payload, 'null')) end
$$;

-- What is kept of a response whose row is deleted: as pawl.payload_hash, of the step that it names, too.
create or replace function pawl.response_hash (p_payload jsonb, p_step text, p_item integer[])
  returns bytea
  language plpgsql immutable
as $$
begin
  return pawl.payload_hash(case when p_step is null then p_payload else jsonb_build_array(p_payload, p_step, coalesce(p_item, '{}')) end);
end
$$;

-- The functions below are the parts of pawl.process_respond, in its order, and run under its planner settings. p_ids, p_names, p_keys, p_payloads:
-- the items; p_held: the processes that exist, whose rows it has locked; p_stored: the items that are new, by their position; p_kind: of all items, and
-- with p_item, p_undo and p_aside which step replies are for; p_steps, p_items: the steps that signals name, and their items as texts; null: none does.

create or replace function pawl.response_key_check (p_key text)
  returns void
  language plpgsql immutable
as $$
begin
  if (char_length(p_key) between 1 and 200) is not true then
    raise exception 'key must have 1 to 200 characters' using errcode = 'QP001';
  end if;
end
$$;

-- Raises unless the arrays name responses.
create or replace function pawl.responses_guard (p_ids bigint[], p_names text[], p_keys text[], p_payloads jsonb[])
  returns void
  language plpgsql
as $$
declare
  v_count integer := cardinality(p_ids);
begin
  perform pawl.array_check('ids', p_ids, v_count, 'QP001'), pawl.array_check('names', p_names, v_count, 'QP001'),
          pawl.array_check('keys', p_keys, v_count, 'QP001'), pawl.array_check('payloads', p_payloads, v_count, 'QP001');
  perform pawl.response_key_check(k) from unnest(p_keys) k where (char_length(k) between 1 and 200) is not true;
end
$$;

-- Those of these processes whose state would exceed its limit with all items merged: one may replace what an earlier one has set.
create or replace function pawl.responses_state_too_large (p_large bigint[], p_ids bigint[], p_names text[], p_payloads jsonb[], p_max integer)
  returns bigint[]
  language plpgsql stable
as $$
begin
  return array(
    select p.id from pawl.process p
    where p.id = any (p_large) and (
      select pawl.json_bytes(p.state || jsonb_object_agg(e.key, e.value order by i.ord))
      from unnest(p_ids, p_names, p_payloads) with ordinality i (id, name, payload, ord)
      cross join lateral jsonb_each(pawl.response_patch(i.name, i.payload)) e (key, value)
      where i.id = p.id) > p_max);
end
$$;

-- The processes whose state would exceed its limit, or the responses theirs.
create or replace function pawl.responses_too_large (p_held bigint[], p_ids bigint[], p_names text[], p_payloads jsonb[])
  returns bigint[]
  language plpgsql stable
as $$
#variable_conflict use_column
declare
  c_state_max constant integer := 1024 * 1024;
  c_count_max constant integer := 10000; -- of the responses from outside
  c_bytes_max constant integer := 8 * 1024 * 1024;
  v_large bigint[];
  v_state_large bigint[]; -- by the sum of state and payloads
begin
  select array_agg(u.id) filter (where l.is_large), array_agg(u.id) filter (where not l.is_large)
  into v_large, v_state_large
  from (select u.id, count(*) as count, sum(pawl.json_bytes(u.payload)) as bytes
        from unnest(p_ids, p_payloads) u (id, payload) where u.id = any (p_held) group by u.id) u
  cross join lateral (
    select pawl.json_bytes(p.state) as bytes, p.response_count, p.response_bytes from pawl.process p where p.id = u.id limit 1) p
  cross join lateral (select u.count + p.response_count > c_count_max or u.bytes + p.response_bytes > c_bytes_max as is_large) l
  where l.is_large or u.bytes + p.bytes > c_state_max;
  if v_state_large is not null then
    v_large := v_large || pawl.responses_state_too_large(v_state_large, p_ids, p_names, p_payloads, c_state_max);
  end if;
  return coalesce(v_large, '{}'::bigint[]);
end
$$;

-- Of processes that wait, those of which a wait is complete with the items that are new.
create or replace function pawl.responses_complete (
  p_held bigint[], p_ids bigint[], p_names text[], p_stored integer[], p_kind text, p_item integer[], p_undo boolean, p_aside integer, p_steps text[],
  p_items text[])
  returns bigint[]
  language plpgsql stable
as $$
begin
  return array(
    select p.id from pawl.process p
    where p.id = any (p_held) and (
      p.phase = 'forward' and (exists (select from pawl.process_cancellations(p.id)) or p_kind = 'cancel' and exists (
        select from unnest(p_ids) with ordinality n (id, ord) where n.id = p.id and n.ord = any (p_stored)))
      or exists (
        select from pawl.waits_read(p.waits) w
        where w.count <= pawl.process_response_count(p.id, w.kind, w.name, w.item, w.undo, w.aside, w.to_step, w.to_item) + (
            select count(*) from unnest(p_ids, p_names, p_steps, p_items) with ordinality n (id, name, step, item, ord)
            where n.id = p.id and n.ord = any (p_stored)
              and (w.kind = 'any' or w.kind = p_kind and n.name = w.name and w.item = p_item and w.undo = p_undo and w.aside = p_aside
                   and (n.step is null or n.step = w.to_step and n.item::integer[] = w.to_item)))))
    order by p.id);
end
$$;

-- The names of responses that waits of a definition take by name, or the wait of this step.
create or replace function pawl.definition_wait_names (p_definition_id integer, p_step text default null)
  returns text[]
  language plpgsql stable
  set plan = keyed_cached
as $$
begin
  return array(
    select distinct n.name from pawl.process_definition_step s
    cross join lateral unnest(coalesce(s.race, array[s.response])) n (name)
    where s.definition_id = p_definition_id and s.kind = 'wait' and n.name is not null and (p_step is null or s.name = p_step) order by n.name);
end
$$;

-- The names of the responses that the waits of a definition take, or the wait of this step. Null: any, because there is no definition (code waits for what it
-- wants), or because a wait is for a condition on the state, which any response may change.
create or replace function pawl.definition_responses (p_definition_id integer, p_step text default null)
  returns text[]
  language plpgsql stable
  set plan = keyed_cached
as $$
begin
  if p_definition_id is null or exists (
       select from pawl.process_definition_step s
       where s.definition_id = p_definition_id and s.kind = 'wait' and s.until is not null and (p_step is null or s.name = p_step)) then
    return null;
  end if;
  return pawl.definition_wait_names(p_definition_id, p_step);
end
$$;

-- Does a process that waits for these wait for such a response?
create or replace function pawl.is_awaited (
  p_waits jsonb, p_kind text, p_name text, p_item integer[], p_undo boolean, p_aside integer, p_to_step text, p_to_item integer[])
  returns boolean
  language plpgsql stable
as $$
begin
  return exists (
    select from pawl.waits_read(p_waits) w
    where w.kind = 'any' or w.kind = p_kind and w.name = p_name and w.item = p_item and w.undo = p_undo and w.aside = p_aside
      and (p_to_step is null or p_to_step = w.to_step and p_to_item = w.to_item));
end
$$;

-- Has this wait of a process ended, so that it takes no response any more? One that has failed may be tried again.
create or replace function pawl.wait_has_ended (p_id bigint, p_step text, p_item integer[])
  returns boolean
  language plpgsql stable
as $$
begin
  return exists (
    select from pawl.process_step s
    where s.id = p_id and s.step = p_step and s.item = p_item and not s.undo and s.kind = 'step' and s.aside = 0 and s.error is null);
end
$$;

-- Insert the items that are new, and merge signals into the states. p_resumed: the processes that they have resumed.
create or replace function pawl.responses_store (
  p_ids bigint[], p_names text[], p_keys text[], p_payloads jsonb[], p_stored integer[], p_resumed bigint[], p_actor text,
  p_kind text, p_item integer[], p_undo boolean, p_aside integer, p_steps text[], p_items text[])
  returns void
  language plpgsql
as $$
#variable_conflict use_column
declare
  v_now timestamptz := pawl.now();
begin
  with item as (
    select u.ord, u.id, u.name, u.key, coalesce(u.payload, 'null') as payload, u.step, coalesce(u.item::integer[], '{}') as to_item,
           case when u.id = any (p_resumed) and a.is_for then u.ord = max(u.ord) over (partition by u.id, a.is_for) end as resumed
    from unnest(p_ids, p_names, p_keys, p_payloads, p_steps, p_items) with ordinality u (id, name, key, payload, step, item, ord)
    cross join lateral ( -- one that names a step that does not wait has resumed nothing
      select u.step is null or exists (
        select from pawl.process p where p.id = u.id and pawl.is_awaited(p.waits, p_kind, u.name, p_item, p_undo, p_aside, u.step, u.item::integer[])) as is_for) a
    where u.ord = any (p_stored)
  ), stored as (
    insert into pawl.process_response (id, kind, name, item, undo, aside, to_step, to_item, key, number, payload, at, actor, met, resumed, waited_at, verdict, unexpected_in)
    select i.id, p_kind, i.name, p_item, p_undo, p_aside, i.step, i.to_item, i.key, nextval('pawl.response_seq'), i.payload, v_now, p_actor, p.met, i.resumed, p.waited_at,
           case when p_kind <> 'signal' then null
                when i.resumed is not null then 'RESUMED'
                when u.is_late then 'LATE'
                when u.definition_id is not null then 'STORED_UNEXPECTED'
                else 'STORED' end, u.definition_id
    from (select * from item order by item.ord) i
    left join lateral (
      select case when p_kind = 'reply' then pawl.record_text(i.name, p_item, p_undo, p_aside => p_aside) else pawl.record_text(p.step, p.item, p.undo) end as met,
             case when i.resumed then p.waited_at end as waited_at
      from pawl.process p where p.id = i.id and (i.resumed or pawl.is_awaited(p.waits, p_kind, i.name, p_item, p_undo, p_aside, i.step, i.to_item))
      limit 1) p on true
    left join lateral (
      select l.is_late, case when not l.is_late and not pawl.is_awaited(p.waits, p_kind, i.name, p_item, p_undo, p_aside, i.step, i.to_item)
                                  and i.name <> all (pawl.definition_responses(p.definition_id, i.step)) then p.definition_id end as definition_id
      from pawl.process p
      cross join lateral (
        select exists (select from pawl.outcome o where o.id = i.id) or i.step is not null and pawl.wait_has_ended(i.id, i.step, i.to_item) as is_late) l
      where p_kind = 'signal' and i.resumed is null and p.id = i.id limit 1) u on true
    returning id, name, key, payload, number
  ), patch as (
    select s.id, coalesce(jsonb_object_agg(m.key, m.value order by s.number) filter (where m.key is not null), '{}') as patch,
           count(distinct s.number) as responses, sum(octet_length(s.payload::text)) filter (where m.is_first) as bytes
    from stored s
    left join lateral (
      select e.key, e.value, row_number() over () = 1 as is_first from jsonb_each(pawl.response_patch(s.name, s.payload)) e (key, value)
    ) m on true
    where p_kind = 'signal'
    group by s.id
  )
  update pawl.process p set state = p.state || a.patch, version = p.version + a.responses,
    response_count = p.response_count + a.responses, response_bytes = p.response_bytes + coalesce(a.bytes, 0),
    wait = case when p.id = any (p_resumed) then null else p.wait end, waits = case when p.id = any (p_resumed) then null else p.waits end
  from patch a where p.id = a.id;
  if p_kind <> 'signal' then
    update pawl.process p set wait = null, waits = null where p.id = any (p_resumed);
  end if;
end
$$;

-- A row per item. p_kind: signal; with any other the state stays as it is (outcomes of commands, which their step records; decisions). verdict: RESUMED (it completed a wait),
-- STORED (the process does not wait for it, or for more), STORED_UNEXPECTED (no wait of its definition takes this name), REPEATED (the key is known, with the same payload), KEY_REUSED (the key is known with
-- another payload or step; nothing was stored), LATE (the process has ended, or the wait that it names; its state was patched), NOT_FOUND, TOO_LARGE (the state would exceed its
-- limit, or the responses theirs; nothing was stored). first: of a response that is stored, the verdict of its first sender.
-- unexpected_in: of STORED_UNEXPECTED, the definition. p_steps: the steps that signals name, as they are shown: no other wait takes them.
create or replace function pawl.process_respond (
  p_ids bigint[], p_names text[], p_keys text[], p_payloads jsonb[], p_actor text, p_kind text default 'signal',
  p_item integer[] default '{}', p_undo boolean default false, p_aside integer default 0, p_steps text[] default null)
  returns table (ord integer, verdict text, first text, unexpected_in integer)
  language plpgsql security definer set search_path = pawl, pg_temp
  set plan = keyed_cached
as $$
#variable_conflict use_column
declare
  v_held bigint[];
  v_waiting bigint[];
  v_large bigint[] := '{}'::bigint[];
  v_stored integer[];
  v_resumed bigint[] := '{}'::bigint[];
  v_steps text[]; -- that items name, without
  v_items text[]; -- their items; null: none does
begin
  perform pawl.responses_guard(p_ids, p_names, p_keys, p_payloads), pawl.array_check('steps', p_steps, cardinality(p_ids), 'QP001', true);
  if array_remove(p_steps, null) <> '{}' then
    select array_agg(s.step order by u.ord), array_agg(s.item order by u.ord) into v_steps, v_items
    from unnest(p_ids) with ordinality u (id, ord)
    left join pawl.steps_read(p_ids, p_steps) s on s.ord = u.ord;
  end if;
  select coalesce(array_agg(h.id), '{}'), array_agg(h.id) filter (where h.wait is not null) into v_held, v_waiting
  from (select p.id, p.wait from pawl.process p where p.id = any (p_ids) order by p.id for update) h;
  -- Under the locks, in a snapshot that sees all responses stored before.
  if p_kind = 'signal' then
    v_large := pawl.responses_too_large(v_held, p_ids, p_names, p_payloads);
    if cardinality(v_large) > 0 then -- without those that are stored already
      select pawl.responses_too_large(v_large, array_agg(u.id order by u.ord), array_agg(u.name order by u.ord), array_agg(u.payload order by u.ord))
      into v_large
      from unnest(p_ids, p_names, p_keys, p_payloads) with ordinality u (id, name, key, payload, ord)
      where not exists (
        select from pawl.process_response r where r.id = u.id and r.kind = p_kind and r.name = u.name and r.item = p_item and r.key = u.key)
        and not exists (select from pawl.kept_response k where k.id = u.id and k.name = u.name and k.key = u.key);
      v_large := coalesce(v_large, '{}'::bigint[]);
    end if;
  end if;
  v_stored := array(
    select i.ord::integer
    from (select distinct on (u.id, u.name, u.key) u.ord, u.id, u.name, u.key
          from unnest(p_ids, p_names, p_keys) with ordinality u (id, name, key, ord)
          where u.id = any (v_held) and u.id <> all (v_large)
          order by u.id, u.name, u.key, u.ord) i
    where not exists (
      select from pawl.process_response r where r.id = i.id and r.kind = p_kind and r.name = i.name and r.item = p_item and r.key = i.key)
      and not exists (select from pawl.kept_response k where p_kind = 'signal' and k.id = i.id and k.name = i.name and k.key = i.key));
  if cardinality(v_stored) > 0 then
    -- Queued before the responses are inserted, so that their rows say which of them did it, and the process's row is updated once.
    if v_waiting is not null then
      v_resumed := pawl.process_resume(pawl.responses_complete(v_waiting, p_ids, p_names, v_stored, p_kind, p_item, p_undo, p_aside, v_steps, v_items));
    end if;
    perform pawl.responses_store(p_ids, p_names, p_keys, p_payloads, v_stored, v_resumed, p_actor, p_kind, p_item, p_undo, p_aside, v_steps,
                                 v_items);
  end if;
  return query
    select u.ord::integer,
           case when p.id is null then 'NOT_FOUND'
                when u.id = any (v_large) and r.payload is null and k.payload_hash is null then 'TOO_LARGE'
                when u.ord <> all (v_stored) then
                  case when case when r.payload is null then k.payload_hash = pawl.response_hash(u.payload, u.step, u.item::integer[])
                                 else r.payload = coalesce(u.payload, 'null') and r.to_step is not distinct from u.step
                                   and r.to_item = coalesce(u.item::integer[], '{}') end then 'REPEATED' else 'KEY_REUSED' end
                when r.verdict is not null then r.verdict
                when u.id = any (v_resumed) then 'RESUMED'
                when o.id is not null then 'LATE'
                else 'STORED' end, coalesce(r.verdict, k.verdict), coalesce(r.unexpected_in, k.unexpected_in)
    from unnest(p_ids, p_names, p_keys, p_payloads, v_steps, v_items) with ordinality u (id, name, key, payload, step, item, ord)
    left join lateral (select p.id from pawl.process p where p.id = u.id limit 1) p on true
    left join lateral (select o.id from pawl.outcome o where o.id = u.id limit 1) o on true
    left join lateral (
      select r.payload, r.to_step, r.to_item, r.verdict, r.unexpected_in from pawl.process_response r
      where r.id = u.id and r.kind = p_kind and r.name = u.name and r.item = p_item and r.key = u.key limit 1) r on true
    left join lateral (
      select k.payload_hash, k.verdict, k.unexpected_in from pawl.kept_response k
      where r.payload is null and p_kind = 'signal' and k.id = u.id and k.name = u.name and k.key = u.key limit 1) k on true
    order by u.ord;
end
$$;

-- The outcomes of commands and children that one step of a process waits for; the key is the command's. A result that is too
-- large to be a step's is left out, and the reply says so: the step fails, but is known to have happened. What a life before has sent is not a
-- reply to the present one.
create or replace function pawl.process_reply (p_id bigint, p_life integer, p_step text, p_item integer[], p_undo boolean, p_aside integer, p_replies jsonb[])
  returns void
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
declare
  c_result_max constant integer := 1024 * 1024;
begin
  perform from pawl.process p where p.id = p_id and p.life = p_life for update;
  if not found then
    return;
  end if;
  perform from pawl.process_respond(
    array_fill(p_id, array[cardinality(p_replies)]), array_fill(p_step, array[cardinality(p_replies)]),
    array(select r ->> 'command_id' from unnest(p_replies) with ordinality u (r, n) order by u.n),
    array(
      select case when pg_column_size(r) < c_result_max / 100 or pawl.json_bytes(r) <= c_result_max then r
                  else r || jsonb_build_object('result', null, 'error', format('its result has more than %s bytes', c_result_max)) end
      from unnest(p_replies) with ordinality u (r, n) order by u.n),
    'reply', 'reply', p_item, p_undo, p_aside);
end
$$;
