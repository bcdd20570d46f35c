-- move.sql - move processes to a newer version of their definition.
--
-- A process keeps the version it was started with. It can be moved if its records mean the same in the newer version: an activation walks the
-- steps from the first one and passes those that are recorded, so the walk of the newer version must pass the same steps in the same order.
-- Both versions are rows of pawl.process_definition_step. The records of a process are joined to them by key, and one pass over them in the order of
-- either version finds what differs, so the cost is linear in the records and does not depend on the steps that have none. The joins are lateral with a
-- limit, so that each is a lookup by key with any statistics.
-- Lock order: process rows by id, of which those that other transactions have locked are skipped; rows of pawl.delayed, pawl.tsq and pawl.ready, of which a locked one is not waited for; then as
-- pawl.process_respond. A process whose row in these is held cannot be claimed until the commit, so no activation runs meanwhile.
-- Errors: QP001 an argument is out of range.

-- How far a process is: its records by step and item, without the decisions after rounds of a repeat; a step inside a parallel or loop stands for that one, too. is_true: of a "when". acted: it has
-- happened, whether or not its step could be recorded, or is being compensated. is_sent, is_undo_sent: its command or child, or that of its
-- compensation, has been sent, and no outcome of it is recorded. used: it has ended and used up responses.
create or replace function pawl.process_progress (p_id bigint, p_definition_id integer)
  returns table (name text, item integer[], is_done boolean, is_true boolean, acted boolean, is_sent boolean, is_undo_sent boolean, used boolean)
  language plpgsql stable
as $$
#variable_conflict use_column
begin
  return query
    with recursive known as materialized (
      select r.name, r.item, bool_or(r.is_done) as is_done, bool_or(r.is_done and r.result = 'true') as is_true, bool_or(r.acted) as acted,
             bool_or(r.is_sent) and not bool_or(r.is_done) as is_sent, bool_or(r.is_undo_sent) and not bool_or(r.is_undone) as is_undo_sent,
             bool_or(r.is_done and not r.is_late) as used
      from (
        select s.step as name, s.item, s.error is null and s.kind = 'step' and not s.undo as is_done, s.result,
               s.undo or s.kind = 'done' or s.kind = 'step' and s.error is null as acted, false as is_sent, false as is_undo_sent,
               s.error is null and s.kind = 'step' and s.undo as is_undone, s.verdict = 'timed_out' as is_late
        from pawl.process_step s
        where s.id = p_id and s.aside = 0 and not (cardinality(s.item) > 0 and exists (
          select from pawl.process_definition_step d
          where d.definition_id = p_definition_id and d.name = s.step and d.kind = 'repeat' and d.depth < cardinality(s.item)))
        union all
        select s.step, s.item, false, null, s.undo, not s.undo, s.undo, false, false
        from pawl.process_sent s
        cross join lateral (select c.command_id::text as key from pawl.command c where c.id = s.sent_id limit 1) c
        left join lateral (
          select r.is_aside from pawl.process_response r
          where r.id = p_id and r.kind = 'reply' and r.name = s.step and r.item = s.item and r.key = c.key limit 1) r on true
        where s.id = p_id and r.is_aside is not true) r
      group by r.name, r.item
    ), around as (
      select k.name, k.item, k.is_done, k.is_true, k.acted, k.is_sent, k.is_undo_sent, k.used from known k
      union
      select o.parent, a.item[1:u.depth], false, false, false, false, false, false
      from around a
      cross join lateral (
        select d.parent from pawl.process_definition_step d where d.definition_id = p_definition_id and d.name = a.name limit 1) o
      cross join lateral (
        select d.depth from pawl.process_definition_step d where d.definition_id = p_definition_id and d.name = o.parent limit 1) u
      left join lateral (
        select true as is_known from pawl.process_step s
        where s.id = p_id and s.step = o.parent and cardinality(s.item) = u.depth and s.aside = 0 limit 1) k on true
      where k.is_known is null
    )
    select a.name, a.item, a.is_done, a.is_true, a.acted, a.is_sent, a.is_undo_sent, a.used from around a;
end
$$;

-- The names of the responses that a wait takes: "a", or "a" or "b" of a race. null: it takes none, because it is for a condition.
create or replace function pawl.wait_shown (p_step pawl.process_definition_step)
  returns text
  language sql immutable
as $$
  select string_agg('"' || n || '"', ' or ' order by n) from unnest(coalesce(p_step.race, array[p_step.response])) n
$$;

-- Why what a step has recorded does not mean the same if the step is that of p_new, wherever it is; null: it does. The step of p_old is that of the records.
create or replace function pawl.step_differs (
  p_old pawl.process_definition_step, p_new pawl.process_definition_step, p_is_done boolean, p_acted boolean, p_is_sent boolean, p_is_undo_sent boolean,
  p_used boolean)
  returns text
  language sql immutable
as $$
  select case
    when p_new.name is null then 'does not exist'
    when p_new.kind is distinct from p_old.kind then 'was a ' || coalesce(p_old.kind, '?') || ' and is a ' || p_new.kind
    when p_new.depth <> p_old.depth then 'was inside of ' || p_old.depth || ' loops and is inside of ' || p_new.depth
    when p_new.list <> p_old.list then 'is in another list of steps'
    when p_new.kind = 'wait' and not p_is_done and pawl.wait_shown(p_new) is distinct from pawl.wait_shown(p_old) then
      'waits for ' || coalesce(pawl.wait_shown(p_new), 'a condition') || ' instead of ' || coalesce(pawl.wait_shown(p_old), 'a condition')
    when p_new.kind = 'wait' and p_used and pawl.wait_shown(p_new) is distinct from pawl.wait_shown(p_old) then
      'has used up ' || coalesce('responses ' || pawl.wait_shown(p_old), 'no response') || ', and would have used ' || coalesce(pawl.wait_shown(p_new), 'none')
    when p_new.kind = 'wait' and p_used and p_old.until is null and p_new.responses <> p_old.responses then
      'has used up ' || p_old.responses || ' responses, and would have used ' || p_new.responses
    when p_new.kind = 'sleep' and not p_is_done and p_new.sleeps <> p_old.sleeps then 'sleeps ' || p_new.sleeps || ' instead of ' || p_old.sleeps
    when p_is_sent and p_new.sends is distinct from p_old.sends then
      'has sent ' || p_old.sends || ', and would send ' || coalesce(p_new.sends, 'nothing')
    when p_is_undo_sent and p_new.undo_sends is distinct from p_old.undo_sends then
      'has sent ' || coalesce(p_old.undo_sends, 'nothing') || ' for its compensation, and would send ' || coalesce(p_new.undo_sends, 'nothing')
    when p_old.is_compensated and not p_new.is_compensated and (p_acted or p_is_sent) then 'has no compensation for what it did' end
$$;

-- The first recorded step that differs, and why: by itself (pawl.step_differs), or in its place. For each record, within its list and item: run_at, the last new
-- position of the steps that ran before it; passed_to, where a "when" before it has gone on; runs_at, the position that is reached by what has run or was
-- passed over before it; missing_at, the first position before it that nothing has reached. No row: none differs.
create or replace function pawl.process_place_differs (p_id bigint, p_old integer, p_new integer)
  returns table (name text, why text)
  language plpgsql stable
as $$
#variable_conflict use_column
begin
  return query
    with placed as materialized (
      select r.name, r.item, (o.step).list as old_list, (o.step).position as old_position, (n.step).list, (n.step).position,
             pawl.step_differs(o.step, n.step, r.is_done, r.acted or c.phase <> 'forward', r.is_sent, r.is_undo_sent, r.used) as why,
             case when (n.step).kind = 'when' and r.is_done then case when r.is_true then (n.step).then_at else (n.step).else_at end end as goes_to
      from pawl.process_progress(p_id, p_old) r
      left join lateral (select d from pawl.process_definition_step d where d.definition_id = p_old and d.name = r.name limit 1) o (step) on true
      left join lateral (select d from pawl.process_definition_step d where d.definition_id = p_new and d.name = r.name limit 1) n (step) on true
      cross join (select p.phase from pawl.process p where p.id = p_id) c
    ), reached as ( -- before each step of its list, in both orders
      select p.*, max(p.position) over (partition by p.list, p.item order by p.old_position rows between unbounded preceding and 1 preceding) as run_at,
             max(p.goes_to) over new_order as passed_to,
             coalesce(max(greatest(p.position + 1, p.goes_to)) over new_order, 0) as runs_at
      from placed p
      window new_order as (partition by p.list, p.item order by p.position rows between unbounded preceding and 1 preceding)
    ), judged as (
      select r.*, min(r.runs_at) filter (where r.runs_at < r.position) over (partition by r.list, r.item order by r.position) as missing_at from reached r
    ), first as (
      select j.* from judged j
      where j.why is not null or j.run_at > j.position or j.passed_to > j.position or j.missing_at is not null
      order by j.old_list, j.old_position, j.item limit 1
    )
    select f.name, coalesce(f.why,
      (select 'comes before "' || q.name || '"' from placed q
       where q.list = f.list and q.item = f.item and q.old_position < f.old_position and q.position > f.position order by q.old_position limit 1),
      (select 'is passed over by "' || q.name || '"' from placed q
       where q.list = f.list and q.item = f.item and q.position < f.position and f.position < q.goes_to order by q.position limit 1),
      (select 'comes after "' || n.name || '", which has not run' from pawl.process_definition_step n
       where n.definition_id = p_new and n.list = f.list and n.position = f.missing_at))
    from first f;
end
$$;

-- Why a process cannot go on with another definition; null: it can. The first step that differs, or else one that was set aside after it had acted, and that
-- only the older definition compensates: what it did would not be compensated.
create or replace function pawl.process_differs (p_id bigint, p_old integer, p_new integer)
  returns text
  language plpgsql stable set plan = index_cached
as $$
begin
  return coalesce(
    (select 'step "' || d.name || '" ' || d.why from pawl.process_place_differs(p_id, p_old, p_new) d),
    (select 'step "' || o.name || '" has no compensation for what it did before it was set aside'
     from (select distinct s.step from pawl.process_step s where s.id = p_id and s.error is null and s.aside > 0 and not s.undo) s
     join pawl.process_definition_step o on o.definition_id = p_old and o.name = s.step
     left join pawl.process_definition_step n on n.definition_id = p_new and n.name = o.name and n.depth = o.depth
     where o.is_compensated and n.is_compensated is not true
     order by o.list, o.position limit 1));
end
$$;

-- Give a process that is held another definition, and queue it if it waits.
create or replace function pawl.process_redefine (
  p_id bigint, p_definition_id integer, p_from integer, p_to integer, p_operator text, p_reason text)
  returns void
  language plpgsql
as $$
declare
  v_operator text := pawl.operator_name(p_operator);
  v_resumed bigint[];
begin
  update pawl.process p set definition_id = p_definition_id where p.id = p_id;
  perform from pawl.process_respond(
    array[p_id], array[''], array[p_to::text],
    array[jsonb_strip_nulls(jsonb_build_object('from', p_from, 'to', p_to)) || coalesce(pawl.decision_details(v_operator, p_reason), '{}')],
    v_operator, 'move');
  v_resumed := pawl.process_resume(array(select w.id from pawl.process w where w.id = p_id and w.wait is not null));
  update pawl.process p set wait = null, waits = null where p.id = any (v_resumed);
end
$$;

-- Raises unless so many processes can be moved to a version of this number.
create or replace function pawl.move_guard (p_count integer, p_version integer)
  returns void
  language plpgsql
as $$
begin
  if (p_count <= 1000) is not true then
    raise exception '1 to 1000 processes can be moved in one call, got %', p_count using errcode = 'QP001';
  end if;
  if (p_version >= 1) is not true then
    raise exception 'version must be an integer of at least 1, got %', coalesce(p_version::text, 'null') using errcode = 'QP001';
  end if;
end
$$;

-- Move processes to this version of their definition. Who did it and why is a response of the kind move, one per version, which resumes nothing by
-- itself. verdict: MOVED (is_new false: it has this version already), RUNNING (an activation runs; try again), DIFFERS (reason: the first step that
-- differs), OLDER, CODE (it has no definition), NO_VERSION (its definition has no such version), ENDED, NOT_FOUND,
-- LOCKED (see pawl.process_lock). A process that waits is queued, so that it waits by its new definition.
create or replace function pawl.process_move (
  p_process_ids uuid[], p_domains text[], p_version integer, p_operator text default session_user, p_reason text default null)
  returns table (ord integer, verdict text, is_new boolean, from_version integer, reason text, operator text, moved_at bigint, domains text)
  language plpgsql security definer set search_path = pawl, pg_temp
  set plan = index
as $$
#variable_conflict use_column
declare
  v_domains text[];
  v_found bigint[];
  v_locked bigint[]; -- by other transactions
  v_held bigint[];
  v_moved bigint[] := '{}'::bigint[];
  v_row record;
begin
  perform pawl.decision_guard(p_process_ids, p_domains, p_reason);
  perform pawl.move_guard(cardinality(p_process_ids), p_version);
  v_domains := pawl.process_domains(p_process_ids, p_domains);
  v_found := array(select f.id from pawl.commands_find(p_process_ids, v_domains) f order by f.ord);
  v_locked := pawl.process_lock(v_found);
  v_held := pawl.commands_hold(v_found);
  for v_row in
    select u.ord::integer as ord, p.id, d.id as old_id, d.version as old_version, n.id as new_id, o.id is not null as is_ended, u.queue
    from unnest(v_domains, v_found) with ordinality u (queue, found, ord)
    left join pawl.process p on p.id = u.found
    left join pawl.process_definition d on d.id = p.definition_id
    left join pawl.process_definition n on n.domain = d.domain and n.type = d.type and n.version = p_version
    left join pawl.outcome o on o.id = p.id
    order by u.ord
  loop
    ord := v_row.ord; from_version := v_row.old_version; is_new := false; reason := null; operator := null; moved_at := null;
    domains := v_row.queue;
    verdict := case
      when v_row.id is null then 'NOT_FOUND'
      when v_row.id = any (v_locked) then 'LOCKED'
      when v_row.old_version is null then 'CODE'
      when v_row.new_id is null then 'NO_VERSION'
      when v_row.old_version = p_version or v_row.id = any (v_moved) then 'MOVED'
      when v_row.is_ended then 'ENDED'
      when v_row.old_version > p_version then 'OLDER'
      when v_row.id <> all (v_held) then 'RUNNING' end;
    if verdict is null then
      reason := pawl.process_differs(v_row.id, v_row.old_id, v_row.new_id);
      verdict := case when reason is null then 'MOVED' else 'DIFFERS' end;
      is_new := reason is null;
    end if;
    if is_new then
      v_moved := v_moved || v_row.id;
      perform pawl.process_redefine(v_row.id, v_row.new_id, v_row.old_version, p_version, p_operator, p_reason);
    end if;
    if verdict = 'MOVED' then
      select r.actor, pawl.micros(r.at) into operator, moved_at
      from pawl.process_response r where r.id = v_row.id and r.kind = 'move' and r.key = p_version::text;
    end if;
    return next;
  end loop;
end
$$;
