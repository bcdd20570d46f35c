-- operate.sql - what operators do to processes: retry, cancel, complete. Built on the decisions about commands (bus/operate.sql), which
-- remember operator and reason and answer a repeated decision with what was decided.
--
-- Lock order: process rows by id, of which those that other transactions have locked are skipped; then as pawl.command_decide and pawl.command_cancel.
-- Errors: QP001 an argument is out of range.

-- Lock the rows of processes, to decide about them. Returns those that other transactions have locked (pawl.signal in a transaction that is open): among
-- several they are not waited for, because the others are held meanwhile. One process alone is waited for, as lock_timeout says.
create or replace function pawl.process_lock (p_ids bigint[])
  returns bigint[]
  language plpgsql
  set plan = keyed_cached
as $$
declare
  v_held bigint[];
begin
  if (select count(distinct i) from unnest(p_ids) i) <= 1 then
    perform from pawl.process p where p.id = any (p_ids) for update;
    return '{}'::bigint[];
  end if;
  v_held := array(select p.id from pawl.process p where p.id = any (p_ids) order by p.id for update skip locked);
  return array(select p.id from pawl.process p where p.id = any (p_ids) and p.id <> all (v_held) order by p.id);
end
$$;

-- Is a process in code in the troubleshooting queue although none of its calls has failed: because its workers were lost, or its deadline has passed?
create or replace function pawl.process_is_interrupted (p_id bigint)
  returns boolean
  language plpgsql stable
as $$
begin
  return exists (
    select from pawl.tsq t
    where t.id = p_id and (t.error = pawl.worker_lost_error() or starts_with(t.error, pawl.deadline_error()))
      and exists (select from pawl.process p where p.id = p_id and p.definition_id is null));
end
$$;

-- Decide which failures of processes do not count any more, because an operator has them tried again: all, but of code only those of the call that it
-- failed at. A failure that the function has handled, behind which another call is recorded (with a greater number), stays:
-- the function would take another way if that call succeeded now. Where no call has failed (pawl.process_is_interrupted), all of them stay. p_none: none
-- of code, which is retried from a step that has been set aside, so that all others stay as they are recorded. A failure is decided about once.
create or replace function pawl.process_failures_reset (p_ids bigint[], p_none boolean)
  returns void
  language plpgsql
  set plan = keyed_cached
as $$
begin
  with code as materialized (
    select s.id, max(s.call) as last_call
    from pawl.process_step s
    cross join lateral (select p.definition_id from pawl.process p where p.id = s.id limit 1) p
    where s.id = any (p_ids) and p.definition_id is null
    group by s.id
  )
  update pawl.process_step s
  set is_reset = coalesce((select not p_none and not coalesce(s.call < c.last_call, false) from code c where c.id = s.id), true)
  where s.id = any (p_ids) and s.error is not null and s.is_reset is null and (p_none or not pawl.process_is_interrupted(s.id));
end
$$;

-- Those of these commands that are processes are tried again (pawl.command_decide): failures so far do not count any more, and replies of
-- commands that failed or were canceled are set aside, so that their steps send another command; but not those of failures that stay, nor those that an
-- interrupted function has not seen. Their rows are locked.
create or replace function pawl.process_retried (p_ids bigint[])
  returns void
  language plpgsql
  set plan = keyed_cached
as $$
begin
  update pawl.process p set retried_at = pawl.now(), waited_at = null, failed = case when p.phase <> 'forward' then p.failed end where p.id = any (p_ids);
  -- An operator who has it tried again after its deadline means it.
  update pawl.process_response r set kind = 'deadline'
  from pawl.process p
  where p.id = any (p_ids) and p.phase = 'forward' and r.id = p.id and r.kind = 'cancel' and r.key = 'deadline';
  perform pawl.process_failures_reset(p_ids, false);
  update pawl.process_response r set is_aside = true
  where r.id = any (p_ids) and r.kind = 'reply' and not r.is_aside and r.payload ->> 'status' <> 'COMPLETED' and not exists (
    select from pawl.process_step s
    where s.id = r.id and s.step = r.name and s.item = r.item and s.undo = r.undo and s.kind = 'step' and s.aside = r.aside and s.error is not null
      and s.is_reset is not true)
    and not pawl.process_is_interrupted(r.id);
end
$$;

-- What is to be run again with a step of a definition: the step and those inside of it, what follows it in its list, and what follows the steps around it,
-- with their joined records. What runs beside it, in other branches or for other items of an each, stays; later rounds of a repeat follow. item: those of
-- the records that are meant begin so; number_min: and their next number, if they have one, is at least this. is_self: the step, or one inside of it.
-- is_joined: only the record that says that it has ended. p_item may name one item or round of the step, if that is a loop.
create or replace function pawl.steps_from (p_definition_id integer, p_name text, p_item integer[])
  returns table (name text, item integer[], number_min integer, is_self boolean, is_joined boolean)
  language plpgsql stable
as $$
#variable_conflict use_column
begin
  return query
    with recursive around as (
      select s.*, p_item as item, cardinality(p_item) > s.depth as is_around -- the item or round is meant, of which this has several
      from pawl.process_definition_step s where s.definition_id = p_definition_id and s.name = p_name
      union all
      select s.*, p_item[1:s.depth], true
      from around a join pawl.process_definition_step s on s.definition_id = p_definition_id and s.name = a.parent
    )
    select s.name, case when a.is_around and s.name = a.name then p_item[1:a.depth] else a.item end,
           case when a.is_around and a.kind = 'repeat' and s.name = a.name then p_item[a.depth + 1] else 0 end, -- the decision after the round, too
           a.name = p_name, a.is_around and s.name = a.name
    from around a
    join pawl.process_definition_step s on s.definition_id = p_definition_id and s.number between a.number and case when a.name = p_name then a.last else a.number end
    union all
    select s.name, p_item[1:a.depth], p_item[a.depth + 1] + 1, false, false
    from around a
    join pawl.process_definition_step s on s.definition_id = p_definition_id and s.number > a.number and s.number <= a.last
    where a.is_around and a.kind = 'repeat'
    union all
    select s.name, p_item[1:a.depth], 0, false, false
    from around a
    join pawl.process_definition_step s on s.definition_id = p_definition_id and s.number > a.last and (s.list = a.list or starts_with(s.list, a.list || '/'));
end
$$;

-- What processes have sent and of which no record says how it ended. is_open: no reply has come. Otherwise the reply, as a record without a number: it came
-- while the process was in the troubleshooting queue, or was about to go there. Replies that an operator has set aside are left out. Retention may have
-- deleted the command that a reply is of.
create or replace function pawl.process_sent_unrecorded (p_ids bigint[])
  returns table (id bigint, step text, item integer[], undo boolean, result jsonb, error text, started_at timestamptz, ended_at timestamptz, is_open boolean)
  language plpgsql stable
  set plan = keyed_cached
as $$
#variable_conflict use_column
begin
  return query
    select s.id, s.step, s.item, s.undo, r.payload -> 'result',
           case when r.payload ->> 'status' <> 'COMPLETED' then coalesce(r.payload ->> 'error', r.payload ->> 'status') end,
           c.created_at, coalesce(r.at, c.created_at), r.key is null
    from pawl.process_sent s
    cross join lateral (select c.command_id::text as key, c.created_at from pawl.command c where c.id = s.sent_id limit 1) c
    left join lateral (
      select r.key, r.payload, r.at, r.is_aside from pawl.process_response r
      where r.id = s.id and r.kind = 'reply' and r.name = s.step and r.item = s.item and r.key = c.key limit 1) r on true
    where s.id = any (p_ids) and (r.key is null or not r.is_aside and not exists (
      select from pawl.process_step t
      where t.id = s.id and t.step = s.step and t.item = s.item and t.undo = s.undo and t.kind = 'step' and t.aside = s.aside))
    union all
    select r.id, r.name, r.item, r.undo, r.payload -> 'result',
           case when r.payload ->> 'status' <> 'COMPLETED' then coalesce(r.payload ->> 'error', r.payload ->> 'status') end, r.at, r.at, false
    from pawl.process_response r
    left join lateral ( -- its record
      select true as is_there from pawl.process_step t
      where t.id = r.id and t.step = r.name and t.item = r.item and t.undo = r.undo and t.kind = 'step' and t.aside = r.aside limit 1) t on true
    left join lateral ( -- it is above
      select true as is_there from pawl.command c
      cross join lateral (select from pawl.process_sent s where s.id = r.id and s.sent_id = c.id limit 1) s
      where c.command_id = r.key::uuid limit 1) s on true
    where r.id = any (p_ids) and r.kind = 'reply' and not r.is_aside and t.is_there is null and s.is_there is null;
end
$$;

-- What processes have recorded of what is to be run again (pawl.steps_from), and what they have sent of it without a record (pawl.process_sent_unrecorded); of
-- code, all since the first record of the step. Nothing of a process that has neither of the step nor of one inside of it. p_from: the step as it is shown;
-- of an each, one item may be named, as the steps inside of it show theirs. acts, is_loop, sends: of its step. has_compensations: of its definition. number:
-- null if there is no record.
create or replace function pawl.records_from (p_ids bigint[], p_from text)
  returns table (id bigint, step text, item integer[], undo boolean, kind text, attempt smallint, result jsonb, error text, started_at timestamptz,
                 ended_at timestamptz, number bigint, is_code boolean, acts boolean, is_loop boolean, sends boolean, has_compensations boolean, is_open boolean)
  language plpgsql stable
  set plan = index
as $$
#variable_conflict use_column
begin
  return query
    with process as materialized (
      select p.id, p.definition_id from pawl.process p where p.id = any (p_ids)
    ), definition_step as materialized (
      select s.definition_id, s.name, s.acts, s.is_loop, s.sends, bool_or(s.is_compensated) over (partition by s.definition_id) as has_compensations
      from (select distinct p.definition_id from process p where p.definition_id is not null) n
      join pawl.process_definition_step s on s.definition_id = n.definition_id
    ), record as materialized (
      select s.id, p.definition_id, s.step, s.item, s.undo, s.kind, s.attempt, s.result, s.error, s.started_at, s.ended_at, s.number, false as is_open
      from process p join pawl.process_step s on s.id = p.id and s.aside = 0
      union all
      select u.id, p.definition_id, u.step, u.item, u.undo, 'step', 0::smallint, u.result, u.error, u.started_at, u.ended_at, null, u.is_open
      from pawl.process_sent_unrecorded(p_ids) u join process p on p.id = u.id
    ), meant as materialized ( -- the step
      select distinct r.id, r.definition_id, r.step, r.item from record r where not r.undo and pawl.record_text(r.step, r.item, false) = p_from
      union
      select i.id, i.definition_id, d.name, i.item
      from (select distinct r.id, r.definition_id, r.item[1:n] as item from record r cross join generate_series(0, cardinality(r.item)) n) i
      join definition_step d on d.definition_id = i.definition_id
      where starts_with(p_from, d.name) and pawl.record_text(d.name, i.item, false) = p_from
    ), again as materialized (
      select m.definition_id, f.*
      from (select distinct m.definition_id, m.step, m.item from meant m where m.definition_id is not null) m
      cross join lateral pawl.steps_from(m.definition_id, m.step, m.item) f
    ), since as (
      select r.id, min(r.number) as number, min(r.started_at) as at
      from record r
      join meant m on m.id = r.id
      where not r.undo and (r.step = m.step and r.item = m.item or exists (
        select from again a
        where a.definition_id = r.definition_id and a.name = r.step and a.is_self and a.name <> m.step and r.item[1:cardinality(a.item)] = a.item))
      group by r.id
    )
    select r.id, r.step, r.item, r.undo, r.kind, r.attempt, r.result, r.error, r.started_at, r.ended_at, r.number, r.definition_id is null, t.acts, t.is_loop,
           t.sends is not null,
           coalesce(t.has_compensations, false), r.is_open
    from record r
    join since s on s.id = r.id
    left join definition_step t on t.definition_id = r.definition_id and t.name = r.step
    where case when not exists (select from again a where a.definition_id = r.definition_id) then
                 r.number >= s.number or r.number is null and r.started_at >= s.at
               else not r.undo and exists (
                 select from again a
                 where a.definition_id = r.definition_id and a.name = r.step and r.item[1:cardinality(a.item)] = a.item
                   and coalesce(r.item[cardinality(a.item) + 1] >= a.number_min, true) and (r.kind = 'step' or not a.is_joined)) end;
end
$$;

-- Set aside these (pawl.records_from) and the replies to them, so that all of it is run again. Returns those that have recorded the step, or one inside of
-- it; the others are left alone. Their rows are locked. Records are deleted, but for these, which are set aside (the nth time with aside = n):
--   of a step that acts  one record: the last one of it, that it has happened (done), or that it began (input). A run after it has another key than those
--                        before, and if it succeeded, a later compensation compensates it as well. A command or child that has completed after
--                        its step timed out, or while the process was in the troubleshooting queue, has succeeded.
--   of an each           its items, which compensations of the steps inside of it need
-- By one index lookup per record: where the statistics say that there are few, a join would read all records of the process for each.
create or replace function pawl.process_set_aside (p_ids bigint[], p_from text, p_operator text, p_key uuid)
  returns bigint[]
  language plpgsql
  set plan = keyed_cached
as $$
#variable_conflict use_column
declare
  v_ids bigint[];
begin
  with gone as materialized (
    select * from pawl.records_from(p_ids, p_from)
  ), time as (
    select g.id, (1 + coalesce((select max(s.aside) from pawl.process_step s where s.id = g.id), 0))::smallint as number
    from (select distinct g.id from gone g) g
  ), deleted as (
    delete from pawl.process_step s
    where s.ctid = any (array(
      select s.ctid from gone g
      cross join lateral (
        select s.ctid from pawl.process_step s
        where s.id = g.id and s.step = g.step and s.item = g.item and s.undo = g.undo and s.kind = g.kind and s.aside = 0 and s.attempt = g.attempt
          and s.number = g.number limit 1) s))
  ), acted as (
    select distinct on (g.id, g.step, g.item) g.id, g.step, g.item, g.started_at, g.ended_at, g.number, g.has_compensations,
           coalesce(r.result, g.result) as result,
           case when r.id is null then coalesce(g.error, case when g.kind = 'input' then 'set aside before it had ended' end) end as error
    from gone g
    left join lateral (
      select r.id, r.payload -> 'result' as result from pawl.process_response r
      where g.sends and g.error is not null and r.id = g.id and r.kind = 'reply' and not r.is_aside
        and r.name = g.step and r.item = g.item and not r.undo and r.payload ->> 'status' = 'COMPLETED' order by r.number limit 1) r on true
    where g.kind in ('step', 'done', 'input') and not g.undo and (g.is_code or g.acts)
    order by g.id, g.step, g.item, g.error is null and g.kind <> 'input' desc, g.kind = 'step' desc, g.attempt desc
  ), kept as (
    insert into pawl.process_step (id, step, item, kind, aside, verdict, result, error, started_at, ended_at, number)
    select k.id, k.step, k.item, k.kind, t.number, case when k.error is null then 'done' else 'failed' end, k.result, k.error, k.started_at, k.ended_at,
           coalesce(k.number, nextval('pawl.step_seq'))
    from (select a.id, a.step, a.item, 'step' as kind, case when a.has_compensations then a.result end as result, a.error, a.started_at, a.ended_at, a.number
          from acted a
          union all
          select g.id, g.step, g.item, g.kind, g.result, null, g.started_at, g.ended_at, g.number
          from gone g where g.is_loop and g.has_compensations and g.kind = 'begin') k
    join time t on t.id = k.id
  ), replied as (
    update pawl.process_response r set is_aside = true
    where r.ctid = any (array(
      select r.ctid from gone g
      cross join lateral (
        select r.ctid from pawl.process_response r
        where r.id = g.id and r.kind = 'reply' and r.name = g.step and r.item = g.item and r.undo = g.undo offset 0) r))
  ), noted as (
    insert into pawl.event (id, at, domain_id, attempt, event, actor, details)
    select g.id, pawl.now(), c.domain_id, 0, 'OPERATOR_RETRY', pawl.operator_name(p_operator),
           case when p_key is null then '{}'::jsonb else jsonb_build_object('key', p_key) end ||
             jsonb_build_object('from', p_from, 'deleted', jsonb_agg(jsonb_build_object('name', pawl.record_text(g.step, g.item, g.undo), 'kind', g.kind,
               'attempt', g.attempt, 'error', g.error, 'ended_at', pawl.iso(g.ended_at)) order by g.number, g.ended_at))
    from gone g
    cross join lateral (select c.domain_id from pawl.command c where c.id = g.id limit 1) c
    group by g.id, c.domain_id
  )
  select array_agg(t.id) into v_ids from time t;
  return coalesce(v_ids, '{}'::bigint[]);
end
$$;

-- Those of which p_from or a later step has sent a command or child whose reply has not come.
create or replace function pawl.process_sent_from (p_ids bigint[], p_from text)
  returns bigint[]
  language sql stable
as $$
  select array(select distinct r.id from pawl.records_from(p_ids, p_from) r where r.is_open)
$$;

-- Have processes in the troubleshooting queue tried again: see pawl.process_retried. p_from: from this step on, see pawl.process_set_aside. The
-- audit keeps the names, errors and times of the records that were deleted; not their results, which readers of the audit may not see.
-- Verdicts: as pawl.command_decide. With p_from also NOT_RECORDED (the process has not recorded the step) and COMPENSATING (it is being
-- compensated, and records of its steps say what is left to compensate), SENT (what one of these steps has sent is open: it would be awaited instead of being
-- sent again), DECIDED also where the decision before was a retry from elsewhere: nothing of it is changed, and `decision` is the step. p_key: a retry from
-- a step with this key is done once, also if the process has come to the troubleshooting queue again before it is repeated: each run has new keys.
create or replace function pawl.process_retry (
  p_process_ids uuid[], p_domains text[] default null, p_operator text default session_user, p_reason text default null,
  p_from text default null, p_key uuid default null)
  returns table (ord integer, verdict text, is_new boolean, decision text, operator text, decided_at bigint, domains text)
  language plpgsql security definer set search_path = pawl, pg_temp
  set plan = index
as $$
#variable_conflict use_column
declare
  v_domains text[];
  v_found bigint[];
  v_locked bigint[]; -- by other transactions
  v_done bigint[]; -- with this key before
  v_ids bigint[]; -- in the troubleshooting queue
  v_elsewhere bigint[]; -- not there, and not because of this very decision
  v_forward bigint[];
  v_sent bigint[]; -- what one of the steps has sent is open
  v_aside bigint[];
  v_refused text[]; -- verdicts of those that are not decided about
begin
  perform pawl.decision_guard(p_process_ids, p_domains, p_reason);
  v_domains := pawl.process_domains(p_process_ids, p_domains);
  if p_from is null then
    return query select * from pawl.command_decide(p_process_ids, v_domains, 'retry', p_operator, p_reason, null);
    return;
  end if;
  v_found := array(select f.id from pawl.commands_find(p_process_ids, v_domains) f order by f.ord);
  v_locked := pawl.process_lock(v_found);
  v_done := array(
    select u.id from unnest(v_found) u (id)
    where exists (select from pawl.event e where e.id = u.id and e.event = 'OPERATOR_RETRY' and e.details ->> 'key' = p_key::text));
  v_ids := array(select t.id from pawl.tsq t where t.id = any (v_found) and t.id <> all (v_locked) and t.id <> all (v_done));
  v_elsewhere := array(
    select u.id from unnest(v_found) u (id)
    where u.id <> all (v_ids) and u.id <> all (v_locked) and u.id <> all (v_done) and p_from is distinct from (
      select e.details ->> 'from' from pawl.event e
      where e.id = u.id and e.event = 'OPERATOR_RETRY' and e.details ? 'from'
      order by e.at desc limit 1));
  v_forward := array(select p.id from pawl.process p where p.id = any (v_ids) and p.phase = 'forward');
  v_sent := pawl.process_sent_from(v_forward, p_from);
  v_aside := pawl.process_set_aside(array(select u.id from unnest(v_forward) u (id) where u.id <> all (v_sent)), p_from, p_operator, p_key);
  perform pawl.process_failures_reset(v_aside, true);
  v_refused := array(
    select case when u.id = any (v_locked) then 'LOCKED'
                when u.id = any (v_done) then 'PENDING'
                when u.id = any (v_elsewhere) then 'NOT_IN_TSQ'
                when u.id = any (v_aside) then null
                when u.id = any (v_sent) then 'SENT'
                when u.id = any (v_forward) then 'NOT_RECORDED'
                when u.id = any (v_ids) then 'COMPENSATING' end
    from unnest(v_found) with ordinality u (id, ord) order by u.ord);
  return query
    select u.ord::integer, case when u.refused = 'NOT_IN_TSQ' and l.decision is not null then 'DECIDED' else u.refused end, false,
           coalesce(l.decision, p_from), l.operator, pawl.micros(l.decided_at), null::text
    from unnest(v_found, v_refused) with ordinality u (id, refused, ord)
    left join lateral (select d.* from pawl.decision_last(u.id) d where u.refused in ('NOT_IN_TSQ', 'PENDING')) l on true
    where u.refused is not null;
  if array_position(v_refused, null) is null then
    return;
  end if;
  return query
    select i.ord, d.verdict, d.is_new, d.decision, d.operator, d.decided_at, d.domains
    from (select array_agg(u.id order by u.ord) as ids, array_agg(u.domain order by u.ord) as domains
          from unnest(p_process_ids, v_domains, v_refused) with ordinality u (id, domain, refused, ord) where u.refused is null) a
    cross join lateral pawl.command_decide(a.ids, a.domains, 'retry', p_operator, p_reason, null) d
    join (select u.ord::integer as ord, row_number() over (order by u.ord) as place
          from unnest(v_refused) with ordinality u (refused, ord) where u.refused is null) i on i.place = d.ord;
end
$$;

-- Cancel processes and compensate the steps that have ended. The request is a response of the kind cancel; a process that
-- waits or is in the troubleshooting queue is queued, one that runs finds it with its next write. The same request again changes nothing and
-- reports who decided and when. Verdicts: CANCELING, or the status in which it ended (CANCELED, COMPENSATED); NOT_FOUND, ENDED, AMBIGUOUS,
-- DECIDED (it was canceled without compensation before: see operator, decided_at), LOCKED (see pawl.process_lock).
create or replace function pawl.process_compensate (
  p_process_ids uuid[], p_domains text[] default null, p_operator text default session_user, p_reason text default null)
  returns table (ord integer, verdict text, is_new boolean, decision text, operator text, decided_at bigint, domains text)
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
#variable_conflict use_column
declare
  v_found bigint[];
  v_names text[]; -- of domains, where several have the process
  v_locked bigint[]; -- by other transactions
  v_open bigint[];
  v_stored bigint[];
begin
  perform pawl.decision_guard(p_process_ids, p_domains, p_reason);
  select array_agg(f.id order by f.ord), array_agg(f.domains order by f.ord) into v_found, v_names
  from pawl.commands_find(p_process_ids, pawl.process_domains(p_process_ids, p_domains)) f;
  v_locked := pawl.process_lock(v_found); -- as pawl.command_cancel: the first of both decides
  v_open := array(
    select distinct u.id from unnest(v_found) u (id)
    where u.id <> all (v_locked) and not exists (select from pawl.outcome o where o.id = u.id)
      and not exists (select from pawl.lease l where l.id = u.id and l.cancel) order by 1);
  v_stored := pawl.process_decide(v_open, 'compensate', 'operator', p_operator, p_reason);
  return query
    select u.ord::integer,
           case when u.names is not null then 'AMBIGUOUS'
                when p.id is null then 'NOT_FOUND'
                when u.id = any (v_locked) then 'LOCKED'
                when d.decision is not null then 'DECIDED'
                when o.id is null then 'CANCELING'
                when r.id is null or o.status = 'COMPLETED' then 'ENDED'
                else pawl.process_status(p.id) end,
           coalesce(u.id = any (v_stored), false), coalesce(d.decision, case when r.id is not null then 'compensate' end),
           coalesce(d.operator, r.actor), pawl.micros(coalesce(d.decided_at, r.at)), u.names
    from unnest(v_found, v_names) with ordinality u (id, names, ord)
    left join lateral (select p.id from pawl.process p where p.id = u.id limit 1) p on true
    left join lateral (select o.id, o.status from pawl.outcome o where o.id = u.id limit 1) o on true
    left join lateral (
      select r.id, r.actor, r.at from pawl.process_response r where r.id = u.id and r.kind = 'cancel' order by r.key limit 1) r on true -- an operator's first
    left join lateral (
      select d.* from pawl.decision_last(u.id) d
      where d.decision = 'cancel' and r.id is null
        and (o.status = 'CANCELED' or exists (select from pawl.lease l where l.id = u.id and l.cancel))) d on true
    order by u.ord;
end
$$;
