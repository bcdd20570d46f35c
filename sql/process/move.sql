-- move.sql - move processes to a newer version of their definition.
--
-- A process keeps the version it was started with. It can be moved if its records mean the same in the newer version: an activation walks the
-- steps from the first one and passes those that are recorded, so the walk of the newer version must pass the same steps in the same order.
-- Lock order: process rows by id, of which those that other transactions have locked are skipped; rows of pawl.delayed, pawl.tsq and pawl.ready, of which a locked one is not waited for; then as
-- pawl.process_respond. A process whose row in these is held cannot be claimed until the commit, so no activation runs meanwhile.
-- Errors: QP001 an argument is out of range.

-- Where a step or compensation sends its command or child; null: it sends none.
create or replace function pawl.definition_target (p_action jsonb, p_source jsonb)
  returns text
  language sql immutable
as $$
  select '"' || (coalesce(p_action -> 'command', p_action -> 'process') ->> 'type') || '" to domain "'
    || coalesce(coalesce(p_action -> 'command', p_action -> 'process') ->> 'domain', p_source ->> 'domain') || '"'
$$;

-- The steps of a definition. list: where it is, as a path of the lists it is inside of; position in that list, from 0; depth: how many each it
-- is inside of; parent: the parallel or each around its list. then_at, else_at: the positions at which a "when" goes on. responses: how many a wait
-- takes. sends, undo_sends: where the command or child of the step, or of its compensation, is sent, as type and domain. sleeps: in which form.
create or replace function pawl.definition_steps (p_source jsonb)
  returns table (name text, kind text, list text, place integer, depth integer, parent text, response text, then_at integer, else_at integer,
                 is_compensated boolean, responses bigint, sends text, undo_sends text, sleeps text)
  language sql immutable
as $$
  with recursive list (path, depth, parent, steps) as (
    select '', 0, null::text, p_source -> 'steps'
    union all
    select l.path || '/' || (s.step ->> 'name') || '/' || b.name, l.depth + b.more, s.step ->> 'name', b.steps
    from list l
    cross join lateral jsonb_array_elements(l.steps) s (step)
    cross join lateral (
      select '' as name, 1 as more, s.step -> 'steps' as steps where s.step ? 'each'
      union all
      select p.key, 0, p.value from jsonb_each(case when s.step ? 'parallel' then s.step -> 'parallel' else '{}' end) p) b
  ), step as (
    select l.path, l.depth, l.parent, s.step, s.ord - 1 as place
    from list l cross join lateral jsonb_array_elements(l.steps) with ordinality s (step, ord)
  )
  select s.step ->> 'name',
         (select k from unnest(pawl.step_kinds()) k
          where s.step ? k limit 1),
         s.path, s.place::integer, s.depth, s.parent, s.step #>> '{wait,response}',
         case when s.step ->> 'then' = 'end' then 2147483647
              else coalesce((select t.place from step t where t.path = s.path and t.step ->> 'name' = s.step ->> 'then'), s.place + 1) end::integer,
         case when s.step ->> 'else' = 'end' then 2147483647
              else coalesce((select t.place from step t where t.path = s.path and t.step ->> 'name' = s.step ->> 'else'), s.place + 1) end::integer,
         s.step ? 'compensate',
         coalesce((s.step #>> '{wait,count}')::bigint, 1),
         pawl.definition_target(s.step, p_source), pawl.definition_target(s.step -> 'compensate', p_source),
         case when s.step #> '{sleep}' ? 'until' then 'until a time from a template'
              when s.step #> '{sleep}' ? 'for' then 'for a time from a template'
              when s.step ? 'sleep' then 'for a fixed time' end
  from step s
$$;

-- How far a process is: its records by step and item; a step inside a parallel or each stands for that one, too. is_sent, is_undo_sent: its command or
-- child, or that of its compensation, has been sent, and no outcome of it is recorded. used: it has ended and used up responses.
create or replace function pawl.process_progress (p_id bigint, p_source jsonb)
  returns table (name text, item integer[], is_done boolean, is_true boolean, is_compensation boolean, is_sent boolean, is_undo_sent boolean, used boolean)
  language sql stable
as $$
  with recursive step as materialized (select * from pawl.definition_steps(p_source)),
  known (name, item, is_done, is_true, is_compensation, is_sent, is_undo_sent, used) as (
    select r.step, r.item, bool_or(r.is_done), bool_or(r.is_done and r.result = 'true'), bool_or(r.undo),
           bool_or(r.is_sent) and not bool_or(r.is_done), bool_or(r.is_undo_sent) and not bool_or(r.is_undone), bool_or(r.is_done and not r.is_late)
    from (
      select s.step, s.item, s.error is null and s.kind = 'step' and not s.undo as is_done, s.result, s.undo, false as is_sent, false as is_undo_sent,
             s.error is null and s.kind = 'step' and s.undo as is_undone, s.verdict = 'timed_out' as is_late
      from pawl.process_step s where s.id = p_id and s.aside = 0
      union all
      select s.step, s.item, false, null, s.undo, not s.undo, s.undo, false, false
      from pawl.process_sent s
      cross join lateral (select c.command_id::text as key from pawl.command c where c.id = s.sent_id limit 1) c
      where s.id = p_id and not exists (
        select from pawl.process_response r
        where r.id = p_id and r.kind = 'reply' and r.name = s.step and r.item = s.item and r.key = c.key and r.is_aside)) r
    group by r.step, r.item
  ), recorded (name, item, is_done, is_true, is_compensation, is_sent, is_undo_sent, used) as (
    select * from known
    union
    select o.parent, r.item[1:u.depth], false, false, false, false, false, false
    from recorded r
    join step o on o.name = r.name
    join step u on u.name = o.parent
    where not exists (select from known k where k.name = o.parent)
  )
  select r.name, r.item, bool_or(r.is_done), bool_or(r.is_true), bool_or(r.is_compensation), bool_or(r.is_sent), bool_or(r.is_undo_sent), bool_or(r.used)
  from recorded r group by r.name, r.item
$$;

-- A step that was set aside after it had acted, and that only the older definition compensates: what it did would not be compensated. null: there is none.
create or replace function pawl.process_aside_differs (p_id bigint, p_old jsonb, p_new jsonb)
  returns text
  language sql stable
as $$
  select 'step "' || o.name || '" has no compensation for what it did before it was set aside'
  from pawl.definition_steps(p_old) o
  left join pawl.definition_steps(p_new) n on n.name = o.name and n.depth = o.depth
  where o.is_compensated and n.is_compensated is not true and exists (
    select from pawl.process_step s
    where s.id = p_id and s.error is null and s.aside > 0 and not s.undo and s.step = o.name)
  order by o.list, o.place
  limit 1
$$;

-- The steps that a process has recorded, as they are in both definitions; new_name null: the newer one has no such step. goes_to: the position at which
-- a "when" goes on, as it was decided.
create or replace function pawl.process_compared (p_id bigint, p_old jsonb, p_new jsonb)
  returns table (name text, item integer[], is_done boolean, is_compensation boolean, is_sent boolean, is_undo_sent boolean, used boolean, goes_to integer,
                 list text, old_place integer, old_kind text, old_depth integer, old_response text, old_compensated boolean, old_responses bigint,
                 old_sleeps text, old_sends text, old_undo_sends text,
                 new_name text, new_list text, new_place integer, new_kind text, new_depth integer, new_response text, new_compensated boolean,
                 new_responses bigint, new_sleeps text, new_sends text, new_undo_sends text)
  language sql stable
as $$
  select r.name, r.item, r.is_done, r.is_compensation, r.is_sent, r.is_undo_sent, r.used, case when r.is_true then n.then_at else n.else_at end,
         o.list, o.place, o.kind, o.depth, o.response, o.is_compensated, o.responses, o.sleeps, o.sends, o.undo_sends,
         n.name, n.list, n.place, n.kind, n.depth, n.response, n.is_compensated, n.responses, n.sleeps, n.sends, n.undo_sends
  from pawl.process_progress(p_id, p_old) r
  left join pawl.definition_steps(p_old) o on o.name = r.name
  left join pawl.definition_steps(p_new) n on n.name = r.name
$$;

-- Why a process cannot go on with another definition: the first step that differs; null: it can. Without hash joins: the number of steps is estimated
-- far too high, and a hash table of that size per record takes more time than all the rest.
create or replace function pawl.process_differs (p_id bigint, p_old jsonb, p_new jsonb)
  returns text
  language sql stable set plan = keyed
as $$
  with new as materialized (select * from pawl.definition_steps(p_new)),
  placed as materialized (select * from pawl.process_compared(p_id, p_old, p_new))
  select coalesce((
    select 'step "' || p.name || '" ' || w.why
    from placed p
    cross join lateral (
      select case
        when p.new_name is null then 'does not exist'
        when p.new_kind is distinct from p.old_kind then 'was a ' || coalesce(p.old_kind, '?') || ' and is a ' || p.new_kind
        when p.new_depth <> p.old_depth then 'was inside of ' || p.old_depth || ' each and is inside of ' || p.new_depth
        when p.new_list <> p.list then 'is in another list of steps'
        when p.new_kind = 'wait' and not p.is_done and p.new_response is distinct from p.old_response then
          'waits for ' || coalesce('"' || p.new_response || '"', 'a condition') || ' instead of ' || coalesce('"' || p.old_response || '"', 'a condition')
        when p.new_kind = 'wait' and p.used and p.new_response is distinct from p.old_response then
          'has used up ' || coalesce('responses "' || p.old_response || '"', 'no response') || ', and would have used ' || coalesce('"' || p.new_response || '"', 'none')
        when p.new_kind = 'wait' and p.used and p.old_response is not null and p.new_responses <> p.old_responses then
          'has used up ' || p.old_responses || ' responses, and would have used ' || p.new_responses
        when p.new_kind = 'sleep' and not p.is_done and p.new_sleeps <> p.old_sleeps then 'sleeps ' || p.new_sleeps || ' instead of ' || p.old_sleeps
        when p.is_sent and p.new_sends is distinct from p.old_sends then
          'has sent ' || p.old_sends || ', and would send ' || coalesce(p.new_sends, 'nothing')
        when p.is_undo_sent and p.new_undo_sends is distinct from p.old_undo_sends then
          'has sent ' || coalesce(p.old_undo_sends, 'nothing') || ' for its compensation, and would send ' || coalesce(p.new_undo_sends, 'nothing')
        when p.old_compensated and not p.new_compensated and (
               p.is_done or p.is_sent or p.is_compensation or exists (select from pawl.process c where c.id = p_id and c.phase <> 'forward')
               or exists (select from pawl.process_step s where s.id = p_id and s.step = p.name and s.item = p.item and not s.undo and s.kind = 'done' and s.aside = 0)) then
          'has no compensation for what it did'
        else coalesce(
          (select 'comes before "' || q.name || '"' from placed q
           where q.list = p.list and q.item = p.item and q.old_place < p.old_place and q.new_place > p.new_place
           order by q.old_place limit 1),
          (select 'is passed over by "' || q.name || '"' from placed q
           where q.list = p.list and q.item = p.item and q.new_kind = 'when' and q.is_done
             and q.new_place < p.new_place and p.new_place < q.goes_to
           order by q.new_place limit 1),
          (select 'comes after "' || n.name || '", which has not run' from new n
           where n.list = p.new_list and n.place < p.new_place
             and not exists (select from placed q where q.name = n.name and q.item = p.item)
             and not exists (
               select from placed q
               where q.list = p.list and q.item = p.item and q.new_kind = 'when' and q.is_done
                 and q.new_place < n.place and n.place < q.goes_to)
           order by n.place limit 1)) end as why) w
    where w.why is not null
    order by p.list, p.old_place, p.item
    limit 1), pawl.process_aside_differs(p_id, p_old, p_new))
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
    select u.ord::integer as ord, p.id, u.process_id, d.version as old_version, d.source as old_source, n.id as new_id,
           n.source as new_source, o.id is not null as is_ended, u.queue, d.domain, d.type
    from unnest(p_process_ids, v_domains, v_found) with ordinality u (process_id, queue, found, ord)
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
      reason := pawl.process_differs(v_row.id, v_row.old_source::jsonb, v_row.new_source::jsonb);
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
