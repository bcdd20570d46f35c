-- continue.sql - continue processes as new: the same id, with a fresh history. An end of pawl.process_write ("continue"), which begins the next life.
--
-- Invariants
--   1. The lease ends with it, so the same write again (its answer was lost) is LOST and continues nothing twice.
--   2. Nothing of a life reaches a step of the next one. Keys of steps are derived from a new secret, and replies name the life that they are for.
--   3. A response is taken in one life. Those that a wait has taken are deleted, and their keys are kept (pawl.kept_response): the same response again
--      is REPEATED. The others stay for the next life, in their order, and are merged into the state that it is given, as if they came then. Without one it
--      begins with the present state as it is: they were merged into that when they came, and what was written behind them stays.
--   4. Lives that do nothing are at least a second apart (pawl.continue_due): a process that continues for ever does not keep a worker busy, and its audit
--      grows by an event a second at most.
--   5. A process that is to be canceled or compensated, or whose deadline has passed, does not continue: that is decided first, under the same locks.
-- Lock order: as pawl.process_write, which has locked the leases and the rows of the processes.
-- Errors: QP001 a state is no object, or the process is being compensated.

-- The signals of processes that continue, and which of them the next life has: those that no wait has taken, and that do not name one which had ended
-- when they came (LATE). Of a definition, only those that one of
-- the waits of p_definition_ids (of the next life) takes by name; the others have done what they can: they are in the state.
create or replace function pawl.continue_responses (p_ids bigint[], p_definition_ids integer[])
  returns table (id bigint, number bigint, name text, payload jsonb, stays boolean)
  language plpgsql stable
as $$
#variable_conflict use_column
begin
  return query
    with process as materialized (
      select u.id, case when u.definition_id is not null then pawl.definition_wait_names(u.definition_id) end as names
      from unnest(p_ids, p_definition_ids) u (id, definition_id)
    ), taken as materialized (
      select s.id, s.response, range_agg(s.taken) as positions
      from process p join pawl.process_step s on s.id = p.id
      where s.taken is not null and s.aside = 0
      group by s.id, s.response
    ), signal as (
      select r.id, r.number, r.name, r.payload, r.verdict, p.names, (row_number() over (partition by r.id, r.name order by r.number) - 1)::integer as position
      from process p join pawl.process_response r on r.id = p.id
      where r.kind = 'signal' and not r.is_aside
    )
    select s.id, s.number, s.name, s.payload, (t.positions @> s.position) is not true and s.verdict <> 'LATE' and (s.names is null or s.name = any (s.names))
    from signal s
    left join taken t on t.id = s.id and t.response = s.name;
end
$$;

-- What the next life of processes begins with: their definition, null for code; their input; and the state, in which responses that stay are merged.
-- p_states: null: the present state, in which they are already.
create or replace function pawl.continue_next (p_ids bigint[], p_states jsonb[])
  returns table (id bigint, definition_id integer, input jsonb, state jsonb)
  language plpgsql stable
as $$
#variable_conflict use_column
declare
  v_definition_ids integer[] := array(
    select (select pawl.process_definition_newest(d.domain, d.type)
            from pawl.process p join pawl.process_definition d on d.id = p.definition_id where p.id = u.id)
    from unnest(p_ids) with ordinality u (id, ord) order by u.ord);
begin
  return query
    select u.id, u.definition_id, coalesce(u.state, p.state), coalesce(u.state || coalesce(m.patch, '{}'), p.state)
    from unnest(p_ids, v_definition_ids, p_states) u (id, definition_id, state)
    cross join lateral (select p.state from pawl.process p where p.id = u.id limit 1) p
    left join (
      select r.id, jsonb_object_agg(e.key, e.value order by r.number) as patch
      from pawl.continue_responses(p_ids, v_definition_ids) r
      cross join lateral jsonb_each(pawl.response_patch(r.name, r.payload)) e (key, value)
      where r.stays
      group by r.id) m on m.id = u.id;
end
$$;

-- Verdicts of items that do not continue: ENDED (canceled while it ran, or its deadline has ended it), MET (it is to be compensated), STALE (the state
-- has another version), TOO_LARGE, BUSY (its deadline cannot be decided now).
create or replace function pawl.continue_check (p_ids bigint[], p_ends text[], p_states jsonb[], p_versions bigint[], p_verdicts text[])
  returns text[]
  language plpgsql
as $$
declare
  c_state_max constant integer := 1024 * 1024;
  v_now timestamptz := pawl.now();
  v_verdicts text[];
  v_row record;
begin
  if exists (select from unnest(p_ends, p_states) u (outcome, state) where u.outcome = 'continue' and jsonb_typeof(u.state) <> 'object') then
    raise exception 'the state that a process continues with must be an object' using errcode = 'QP001';
  end if;
  perform pawl.json_check('end_results', p_states, 'QP001');
  if exists (
    select from unnest(p_ids, p_ends, p_verdicts) u (id, outcome, verdict)
    where u.outcome = 'continue' and u.verdict = 'WRITTEN' and exists (select from pawl.process p where p.id = u.id and p.phase <> 'forward')) then
    raise exception 'a process that is being compensated cannot continue as new' using errcode = 'QP001';
  end if;
  v_verdicts := pawl.write_cancel(p_ids, p_verdicts, array(
    select distinct l.id from unnest(p_ids, p_ends, p_verdicts) u (id, outcome, verdict) join pawl.lease l on l.id = u.id and l.cancel
    where u.outcome = 'continue' and u.verdict = 'WRITTEN' order by 1), 'ENDED');
  for v_row in
    select u.ord, u.id, coalesce(p.deadline_action, 'troubleshoot') as action
    from unnest(p_ids, p_ends, v_verdicts) with ordinality u (id, outcome, verdict, ord)
    join pawl.process p on p.id = u.id and p.deadline_due <= v_now
    where u.outcome = 'continue' and u.verdict = 'WRITTEN' and not pawl.process_deadline_is_void(u.id)
    order by u.id
  loop
    v_verdicts[v_row.ord] := case when not pawl.process_deadline_pass(v_row.id, v_row.action) then 'BUSY'
                                  when v_row.action = 'compensate' then 'MET' else 'ENDED' end;
  end loop;
  return array(
    select case when u.outcome is distinct from 'continue' or u.verdict <> 'WRITTEN' then u.verdict
                when exists (select from pawl.process_cancellations(u.id)) then 'MET'
                when u.version > 0 and u.version <> (select p.version from pawl.process p where p.id = u.id) then 'STALE'
                when pawl.json_bytes((select n.state from pawl.continue_next(array[u.id], array[u.state]) n)) > c_state_max then 'TOO_LARGE'
                else u.verdict end
    from unnest(p_ids, p_ends, p_states, p_versions, v_verdicts) with ordinality u (id, outcome, state, version, verdict, ord)
    order by u.ord);
end
$$;

-- When the next life may begin, in the order of the ids; null: at once. One that has taken no response, sent nothing, and run no step that acts ends at once
-- again, perhaps for ever: the next one begins a second after it began, which its first record or suspension tells.
create or replace function pawl.continue_due (p_ids bigint[], p_definition_ids integer[], p_now timestamptz)
  returns timestamptz[]
  language plpgsql stable
as $$
declare
  c_apart constant interval := interval '1 s';
  v_used bigint[] := array(select distinct r.id from pawl.continue_responses(p_ids, p_definition_ids) r where not r.stays);
begin
  return array(
    select case when b.due > p_now and u.id <> all (v_used) and not exists (select from pawl.process_sent s where s.id = u.id) and not exists (
             select from pawl.process_step s
             left join pawl.process_definition_step d on d.definition_id = b.definition_id and d.name = s.step
             where s.id = u.id and s.kind in ('step', 'done')
               and case when b.definition_id is null then coalesce(s.call_kind, 'step') = 'step' else d.acts end) then b.due end
    from unnest(p_ids) with ordinality u (id, ord)
    cross join lateral (
      select p.definition_id, c_apart + coalesce(
               least(p.waited_at, (select min(s.ended_at) from pawl.process_step s where s.id = p.id)), p_now) as due
      from pawl.process p where p.id = u.id limit 1) b
    order by u.ord);
end
$$;

-- What ends with the life: records, responses that were taken, replies and decisions about it, what it has sent and reported. What is open of that is canceled, and
-- children are compensated, as when a process ends. The audit keeps an event.
create or replace function pawl.continue_clear (p_ids bigint[], p_definition_ids integer[], p_due timestamptz[], p_now timestamptz)
  returns void
  language plpgsql
as $$
begin
  insert into pawl.event (id, at, domain_id, attempt, event, actor, details)
  select l.id, p_now, l.domain_id, l.attempt, 'CONTINUED', l.worker,
         jsonb_strip_nulls(jsonb_build_object(
           'life', p.life, 'step', pawl.process_step_shown(p.id, 'IN_PROGRESS'),
           'records', (select count(*) from pawl.process_step s where s.id = p.id),
           'responses', (select count(*) from pawl.process_response r where r.id = p.id and r.kind = 'signal'),
           'delay_ms', ceil(extract(epoch from u.due - p_now) * 1000)))
  from unnest(p_ids, p_due) u (id, due)
  cross join lateral (select * from pawl.lease l where l.id = u.id limit 1) l
  cross join lateral (select * from pawl.process p where p.id = u.id limit 1) p;
  with staying as materialized (
    select s.number from pawl.continue_responses(p_ids, p_definition_ids) s where s.stays
  ), deleted as (
    delete from pawl.process_response r where r.id = any (p_ids) and r.number not in (select s.number from staying s)
    returning r.id, r.kind, r.name, r.key, r.payload, r.to_step, r.to_item, r.verdict, r.unexpected_in
  )
  insert into pawl.kept_response (id, name, key, payload_hash, verdict, unexpected_in, at)
  select d.id, d.name, d.key, pawl.response_hash(d.payload, d.to_step, d.to_item), d.verdict, d.unexpected_in, p_now from deleted d where d.kind = 'signal'
  on conflict do nothing;
  perform pawl.process_orphan_note(p_ids, true);
  delete from pawl.process_sent s where s.id = any (p_ids);
  delete from pawl.process_step s where s.id = any (p_ids);
  delete from pawl.progress g where g.id = any (p_ids);
end
$$;

-- Queue the next life, now or when it is due. Its activations are new ones: no attempt counts.
create or replace function pawl.continue_queue (p_ids bigint[], p_due timestamptz[])
  returns void
  language plpgsql
as $$
declare
  v_now timestamptz;
  v_deleted bigint;
  v_inserted bigint;
  v_domains integer[];
begin
  perform pawl.command_allocation_lock();
  v_now := pawl.now(); -- under the lock: see pawl.requeue_due
  with ended as (
    delete from pawl.lease l where l.id = any (p_ids) returning l.*
  ), next as (
    select e.*, u.due from ended e join unnest(p_ids, p_due) u (id, due) on u.id = e.id
  ), queued as (
    insert into pawl.ready (domain_id, priority, pos, id, attempt, max_attempts, extras)
    select n.domain_id, n.priority, nextval('pawl.command_seq'), n.id, 0, n.max_attempts, n.extras
    from (select * from next where next.due is null order by next.id) n
    returning domain_id
  ), delayed as (
    insert into pawl.delayed (id, due, domain_id, priority, attempt, max_attempts, extras)
    select n.id, greatest(n.due, v_now), n.domain_id, n.priority, 0, n.max_attempts, n.extras
    from next n where n.due is not null
    returning 1
  )
  select (select count(*) from ended), (select count(*) from queued) + (select count(*) from delayed), array(select distinct q.domain_id from queued q)
  into v_deleted, v_inserted, v_domains;
  perform pawl.moved(v_deleted, v_inserted);
  perform pawl.wake_later(v_domains);
end
$$;

-- Continue the items whose end is "continue". p_states: what each life begins with, null: the present state; p_versions: of the state that this was
-- computed from, 0: of none.
-- A deadline that the start has given stays as it is, that of a definition is measured anew.
create or replace function pawl.write_continues (p_ids bigint[], p_ends text[], p_states jsonb[], p_versions bigint[], p_verdicts text[])
  returns text[]
  language plpgsql
as $$
declare
  v_now timestamptz := pawl.now();
  v_verdicts text[] := pawl.continue_check(p_ids, p_ends, p_states, p_versions, p_verdicts);
  v_ids bigint[];
  v_states jsonb[];
  v_definition_ids integer[];
  v_inputs jsonb[];
  v_next_states jsonb[];
  v_due timestamptz[];
begin
  select array_agg(u.id order by u.id), array_agg(u.state order by u.id) into v_ids, v_states
  from (select distinct on (u.id) u.id, u.state from unnest(p_ids, p_ends, p_states, v_verdicts) u (id, outcome, state, verdict)
        where u.outcome = 'continue' and u.verdict = 'WRITTEN' order by u.id) u;
  if v_ids is null then
    return v_verdicts;
  end if;
  select array_agg(n.id order by n.id), array_agg(n.definition_id order by n.id), array_agg(n.input order by n.id), array_agg(n.state order by n.id)
  into v_ids, v_definition_ids, v_inputs, v_next_states from pawl.continue_next(v_ids, v_states) n;
  v_due := pawl.continue_due(v_ids, v_definition_ids, v_now);
  perform pawl.continue_clear(v_ids, v_definition_ids, v_due, v_now);
  update pawl.process p
  set life = p.life + 1, input = u.input, state = u.state, version = p.version + 1, definition_id = u.definition_id, secret = gen_random_uuid(),
      step = null, item = '{}', undo = false, failed = null, reason = null, compensating_at = null, wait = null, waits = null, waited_at = null,
      response_count = r.count, response_bytes = r.bytes,
      deadline = case when p.deadline_given is null then d.deadline else p.deadline end,
      deadline_due = case when p.deadline_given is null then d.deadline else p.deadline_due end,
      deadline_action = case when p.deadline_given is null then d.deadline_action else p.deadline_action end
  from unnest(v_ids, v_inputs, v_next_states, v_definition_ids) u (id, input, state, definition_id)
  cross join lateral (
    select count(*) as count, coalesce(sum(octet_length(r.payload::text)), 0) as bytes from pawl.process_response r where r.id = u.id) r
  left join lateral (
    select v_now + d.deadline_ms * interval '1 ms' as deadline, case when d.deadline_ms is not null then d.deadline_action end as deadline_action
    from pawl.process_definition d where d.id = u.definition_id) d on true
  where p.id = u.id;
  perform pawl.continue_queue(v_ids, v_due);
  return v_verdicts;
end
$$;

-- Delete at most p_limit keys of responses that were taken by a life that ended before this. Returns how many.
create or replace function pawl.kept_responses_prune (p_limit integer, p_before timestamptz)
  returns bigint
  language plpgsql
as $$
declare
  v_gone bigint;
begin
  delete from pawl.kept_response k
  where k.ctid = any (array(select k.ctid from pawl.kept_response k where k.at < p_before order by k.at limit p_limit));
  get diagnostics v_gone = row_count;
  return v_gone;
end
$$;
