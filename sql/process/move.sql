-- move.sql - move processes to a newer version of their definition.
--
-- A process keeps the version it was started with. It can be moved if its records mean the same in the newer version: an activation walks the
-- steps from the first one and passes those that are recorded, so the walk of the newer version must pass the same steps in the same order.
-- Lock order: process rows by id; rows of pawl.delayed, pawl.tsq and pawl.ready, of which a locked one is not waited for; then as
-- pawl.process_respond. A process whose row in these is held cannot be claimed until the commit, so no activation runs meanwhile.
-- Errors: QP001 an argument is out of range.

-- Where a step or compensation sends its command or child; null: it sends none.
create or replace function pawl.definition_target (p_action jsonb, p_source jsonb)
  returns text
  language sql immutable
as $$
  select '"' || (a.sent ->> 'type') || '" to domain "' || coalesce(a.sent ->> 'domain', p_source ->> 'domain') || '"'
  from (select coalesce(p_action -> 'command', p_action -> 'process') as sent) a
$$;

-- The steps of a definition. list: where it is, as a path of the lists it is inside of; position in that list, from 0; depth: how many each it
-- is inside of; parent: the parallel or each around its list. then_at, else_at: the positions at which a "when" goes on. responses: how many a wait
-- takes. sends, undo_sends: where the command or child of the step, or of its compensation, is sent, as type and domain. sleeps: in which form.
drop function if exists pawl.definition_steps (jsonb); -- of an earlier version, with fewer columns
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
         (select k from unnest(array['exec', 'sql', 'http', 'command', 'wallet', 'wait', 'sleep', 'set', 'when', 'fail', 'parallel', 'each', 'process']) k
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

-- Why a process cannot go on with another definition: the first step that differs; null: it can.
create or replace function pawl.process_differs (p_id bigint, p_old jsonb, p_new jsonb)
  returns text
  language sql stable set plan = index
as $$
  with recursive old as materialized (select * from pawl.definition_steps(p_old)),
  new as materialized (select * from pawl.definition_steps(p_new)),
  -- What was sent and has no outcome that was set aside, by the name of the record.
  sent (record) as (
    select substring(c.reply_to from '/[$]reply[.](.*)$')
    from pawl.process_sent s
    cross join lateral (select c.command_id, c.reply_to from pawl.command c where c.id = s.sent_id limit 1) c
    where s.id = p_id and not exists (
      select from pawl.process_response r
      where r.id = p_id and r.name = '$gone.' || substring(c.reply_to from '/[$]reply[.](.*)$') and r.key = c.command_id::text)
  ),
  -- Records by step and indices ("send[3]": send, [3]); a step inside a parallel or each stands for that one, too. is_sent, is_undo_sent: its command
  -- or child, or that of its compensation, has been sent, and no outcome of it is recorded. used: it has ended and used up responses.
  known (name, indices, is_done, is_true, is_compensation, is_sent, is_undo_sent, used) as (
    select r.name, r.indices, bool_or(r.is_done), bool_or(r.is_done and r.result = 'true'), bool_or(r.is_compensation),
           bool_or(r.is_sent) and not bool_or(r.is_done), bool_or(r.is_undo_sent) and not bool_or(r.is_undone), bool_or(r.is_done and not r.is_late)
    from (
      select substring(s.name from '^~?([^:~[]+)') as name, coalesce(substring(s.name from '(\[[0-9\[\]]*\])'), '') as indices,
             s.error is null and s.name !~ '[:~]' as is_done, s.result, s.name like '~%' as is_compensation, false as is_sent, false as is_undo_sent,
             s.error is null and s.name ~ '^~[^:]+$' as is_undone, s.input_hash is not distinct from 'timeout' as is_late
      from pawl.process_step s where s.id = p_id and s.name !~ ':gone[0-9]+$'
      union all
      select substring(t.record from '^~?([^:~[]+)'), coalesce(substring(t.record from '(\[[0-9\[\]]*\])'), ''),
             false, null, t.record like '~%', t.record not like '~%', t.record like '~%', false, false
      from sent t) r
    where r.name is not null
    group by r.name, r.indices
  ), recorded (name, indices, is_done, is_true, is_compensation, is_sent, is_undo_sent, used) as (
    select * from known
    union
    select o.parent, coalesce(substring(r.indices from '^((\[[0-9]+\]){' || u.depth || '})'), ''), false, false, false, false, false, false
    from recorded r
    join old o on o.name = r.name
    join old u on u.name = o.parent
    where not exists (select from known k where k.name = o.parent)
  ), placed as materialized (
    select r.*, o.list, o.place as old_place, o.kind as old_kind, o.depth as old_depth, o.response as old_response,
           o.is_compensated as old_compensated, n.name as new_name, n.list as new_list, n.place as new_place, n.kind as new_kind,
           n.depth as new_depth, n.response as new_response, n.is_compensated as new_compensated,
           o.responses as old_responses, n.responses as new_responses, o.sleeps as old_sleeps, n.sleeps as new_sleeps,
           o.sends as old_sends, n.sends as new_sends, o.undo_sends as old_undo_sends, n.undo_sends as new_undo_sends,
           case when r.is_true then n.then_at else n.else_at end as goes_to
    from (select r.name, r.indices, bool_or(r.is_done) as is_done, bool_or(r.is_true) as is_true, bool_or(r.is_compensation) as is_compensation,
                 bool_or(r.is_sent) as is_sent, bool_or(r.is_undo_sent) as is_undo_sent, bool_or(r.used) as used
          from recorded r group by r.name, r.indices) r
    left join old o on o.name = r.name
    left join new n on n.name = r.name
  )
  select d.why from (
  (select 1 as rank, 'step "' || p.name || '" ' || w.why as why
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
      when (p.is_compensation or exists (select from pawl.process c where c.id = p_id and c.phase <> 'forward'))
           and p.old_compensated and not p.new_compensated then 'has no compensation'
      else coalesce(
        (select 'comes before "' || q.name || '"' from placed q
         where q.list = p.list and q.indices = p.indices and q.old_place < p.old_place and q.new_place > p.new_place
         order by q.old_place limit 1),
        (select 'is passed over by "' || q.name || '"' from placed q
         where q.list = p.list and q.indices = p.indices and q.new_kind = 'when' and q.is_done
           and q.new_place < p.new_place and p.new_place < q.goes_to
         order by q.new_place limit 1),
        (select 'comes after "' || n.name || '", which has not run' from new n
         where n.list = p.new_list and n.place < p.new_place
           and not exists (select from placed q where q.name = n.name and q.indices = p.indices)
           and not exists (
             select from placed q
             where q.list = p.list and q.indices = p.indices and q.new_kind = 'when' and q.is_done
               and q.new_place < n.place and n.place < q.goes_to)
         order by n.place limit 1)) end as why) w
  where w.why is not null
  order by p.list, p.old_place, p.indices
  limit 1)
  union all
  -- What a step did before it was set aside is compensated as well.
  (select 2, 'step "' || o.name || '" has no compensation for what it did before it was set aside'
  from old o
  left join new n on n.name = o.name and n.depth = o.depth
  where o.is_compensated and n.is_compensated is not true and exists (
    select from pawl.process_step s
    where s.id = p_id and s.error is null and s.name ~ ':gone[0-9]+$' and substring(s.name from '^([^:~[]+)') = o.name)
  order by o.list, o.place
  limit 1)) d
  order by d.rank
  limit 1
$$;

-- Move processes to this version of their definition. Who did it and why is a response "$move", one per version, which resumes nothing by
-- itself. verdict: MOVED (is_new false: it has this version already), RUNNING (an activation runs; try again), DIFFERS (reason: the first step that
-- differs), OLDER, CODE (it has no definition), NO_VERSION (its definition has no such version), ENDED, NOT_FOUND. A process that waits is queued, so that it waits by its new definition.
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
  v_held bigint[];
  v_moved bigint[] := '{}'::bigint[];
  v_resumed bigint[];
  v_row record;
begin
  perform pawl.decision_guard(p_process_ids, p_domains, p_reason);
  if cardinality(p_process_ids) > 1000 then
    raise exception '1 to 1000 processes can be moved in one call, got %', cardinality(p_process_ids) using errcode = 'QP001';
  end if;
  if (p_version >= 1) is not true then
    raise exception 'version must be an integer of at least 1, got %', coalesce(p_version::text, 'null') using errcode = 'QP001';
  end if;
  v_domains := pawl.process_domains(p_process_ids, p_domains);
  v_found := array(select f.id from pawl.commands_find(p_process_ids, v_domains) f order by f.ord);
  perform from pawl.process p where p.id = any (v_found) order by p.id for update;
  -- Where a process is that no worker has; held until the commit.
  v_held := array(select d.id from pawl.delayed d where d.id = any (v_found) order by d.id for update skip locked)
    || array(select t.id from pawl.tsq t where t.id = any (v_found) order by t.id for update skip locked)
    || array(
      select f.id
      from (select c.domain_id, c.priority, c.id as pos from pawl.command c where c.id = any (v_found)
            union all
            select r.domain_id, r.priority, r.pos from pawl.ready r where r.id = any (v_found) and r.pos <> r.id
            order by pos) p
      cross join lateral (
        select r.id from pawl.ready r where r.domain_id = p.domain_id and r.priority = p.priority and r.pos = p.pos
        for update skip locked) f);
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
      update pawl.process p set definition_id = v_row.new_id where p.id = v_row.id;
      perform from pawl.process_respond(
        array[v_row.id], array['$move'], array[p_version::text],
        array[jsonb_strip_nulls(jsonb_build_object('from', v_row.old_version, 'to', p_version, 'reason', p_reason))],
        pawl.operator_name(p_operator), p_merge => false);
      v_resumed := pawl.process_resume(array(select w.id from pawl.process w where w.id = v_row.id and w.wait is not null));
      update pawl.process p set wait = null, waits = null where p.id = any (v_resumed);
    end if;
    if verdict = 'MOVED' then
      select r.actor, pawl.micros(r.at) into operator, moved_at
      from pawl.process_response r where r.id = v_row.id and r.name = '$move' and r.key = p_version::text;
    end if;
    return next;
  end loop;
end
$$;
