-- operate.sql - what operators do to processes: retry, cancel, complete. Built on the decisions about commands (bus/operate.sql), which
-- remember operator and reason and answer a repeated decision with what was decided.
--
-- Lock order: process rows by id, then as pawl.command_decide and pawl.command_cancel.
-- Errors: QP001 an argument is out of range.

-- Those of these commands that are processes are tried again (pawl.command_decide): failures so far do not count any more, and replies of
-- commands that failed or were canceled are set aside, so that their steps send another command. Their rows are locked.
create or replace function pawl.process_retried (p_ids bigint[])
  returns void
  language plpgsql
as $$
begin
  update pawl.process p set retried_at = pawl.now() where p.id = any (p_ids);
  update pawl.process_response r set name = '$gone.' || substr(r.name, 8)
  where r.id = any (p_ids) and r.name like '$reply.%' and r.payload ->> 'status' <> 'COMPLETED';
end
$$;

-- Set aside what processes have recorded of a step, of the steps inside of it, and of everything that ended after they began, and the replies to
-- these, so that all of it is run again. Returns those that have recorded the step, or one inside of it; the others are left alone. Their rows
-- are locked. Records are deleted, but for these, of the nth time, which bear the names:
--   NAME:goneN        the last record of a step that acts: of it, or that it has happened (NAME:done). A run after it has another key than those
--                     before, and if it succeeded, a later compensation compensates it as well.
--   NAME:begun:goneN  the items of an each, which compensations of the steps inside of it need
create or replace function pawl.process_set_aside (p_ids bigint[], p_from text, p_operator text)
  returns bigint[]
  language plpgsql
  set plan = keyed_cached
as $$
#variable_conflict use_column
declare
  v_ids bigint[];
begin
  with recursive step as materialized (
    select d.id as definition_id, s.name, s.kind, s.parent, bool_or(s.is_compensated) over (partition by d.id) as has_compensations
    from pawl.process_definition d
    cross join lateral pawl.definition_steps(d.source::jsonb) s
    where d.id in (select p.definition_id from pawl.process p where p.id = any (p_ids))
  ), inside (definition_id, name) as (
    select s.definition_id, s.name from step s where s.parent = split_part(p_from, '[', 1)
    union
    select s.definition_id, s.name from inside i join step s on s.definition_id = i.definition_id and s.parent = i.name
  ), record as materialized (
    select s.id, s.name, s.attempt, s.error, s.result, s.started_at, s.ended_at, p.definition_id, split_part(s.name, ':', 1) as record,
           substring(s.name from '^[^:[]+') as step, coalesce(substring(s.name from '^[^:[]+((\[[0-9]+\])+)'), '') as indices
    from pawl.process_step s
    cross join lateral (select p.definition_id from pawl.process p where p.id = s.id limit 1) p
    where s.id = any (p_ids) and s.name !~ ':gone[0-9]+$'
  ), since as (
    select r.id, min(r.started_at) as at
    from record r
    where r.record = p_from
       or starts_with(r.indices, coalesce(substring(p_from from '\[.*$'), ''))
          and exists (select from inside i where i.definition_id = r.definition_id and i.name = r.step)
    group by r.id
  ), number as (
    select s.id, 1 + coalesce(max(substring(g.name from ':gone([0-9]+)$')::integer), 0) as number
    from since s
    left join pawl.process_step g on g.id = s.id and g.name ~ ':gone[0-9]+$'
    group by s.id
  ), gone as materialized (
    select r.* from record r join since s on s.id = r.id and r.ended_at >= s.at
  ), deleted as (
    delete from pawl.process_step s using gone g where s.id = g.id and s.name = g.name and s.attempt = g.attempt
  ), kept as (
    insert into pawl.process_step (id, name, attempt, result, error, started_at, ended_at)
    select k.id, k.name || ':gone' || n.number, 1, case when k.is_read then k.result end, k.error, k.started_at, k.ended_at
    from (
      (select distinct on (g.id, g.record) g.id, g.record as name, g.result, g.error, g.started_at, g.ended_at,
              coalesce(s.has_compensations, false) as is_read
       from gone g
       left join step s on s.definition_id = g.definition_id and s.name = g.step
       where g.name in (g.record, g.record || ':done') and g.name not like '~%'
         and (g.definition_id is null or s.kind in ('exec', 'sql', 'http', 'wallet', 'command', 'process'))
       order by g.id, g.record, g.error is null desc, g.name = g.record desc, g.attempt desc)
      union all
      select g.id, g.name, g.result, null, g.started_at, g.ended_at, true
      from gone g
      join step s on s.definition_id = g.definition_id and s.name = g.step and s.kind = 'each' and s.has_compensations
      where g.name = g.record || ':begun') k
    join number n on n.id = k.id
  ), replied as (
    update pawl.process_response r set name = '$gone.' || substr(r.name, 8)
    from gone g where r.id = g.id and r.name = '$reply.' || g.name
  ), noted as (
    insert into pawl.event (id, at, domain_id, attempt, event, actor, details)
    select g.id, pawl.now(), c.domain_id, 0, 'OPERATOR_RETRY', pawl.operator_name(p_operator),
           jsonb_build_object('from', p_from, 'deleted', jsonb_agg(jsonb_build_object('name', g.name, 'attempt', g.attempt,
             'error', g.error, 'ended_at', pawl.iso(g.ended_at)) order by g.ended_at))
    from gone g join pawl.command c on c.id = g.id
    group by g.id, c.domain_id
  )
  select array_agg(s.id) into v_ids from since s;
  return coalesce(v_ids, '{}'::bigint[]);
end
$$;

-- Have processes in the troubleshooting queue tried again: see pawl.process_retried. p_from: from this step on, see pawl.process_set_aside. The
-- audit keeps the names, errors and times of the records that were deleted; not their results, which readers of the audit may not see.
-- Verdicts: as pawl.command_decide. With p_from also NOT_RECORDED (the process has not recorded the step) and COMPENSATING (it is being
-- compensated, and records of its steps say what is left to compensate): nothing of it is changed, and `decision` is the step.
create or replace function pawl.process_retry (
  p_process_ids uuid[], p_domains text[] default null, p_operator text default session_user, p_reason text default null,
  p_from text default null)
  returns table (ord integer, verdict text, is_new boolean, decision text, operator text, decided_at bigint, domains text)
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
#variable_conflict use_column
declare
  v_domains text[];
  v_found bigint[];
  v_ids bigint[]; -- in the troubleshooting queue
  v_forward bigint[];
  v_aside bigint[];
  v_refused text[]; -- verdicts of those that are not decided about
begin
  perform pawl.decision_guard(p_process_ids, p_domains, p_reason);
  v_domains := pawl.process_domains(p_process_ids, p_domains);
  v_found := array(select f.id from pawl.commands_find(p_process_ids, v_domains) f order by f.ord);
  v_ids := array(
    select p.id from pawl.process p join pawl.tsq t on t.id = p.id where p.id = any (v_found) order by p.id for update of p);
  if p_from is null then
    return query select * from pawl.command_decide(p_process_ids, v_domains, 'retry', p_operator, p_reason, null);
    return;
  end if;
  v_forward := array(select p.id from pawl.process p where p.id = any (v_ids) and p.phase = 'forward');
  v_aside := pawl.process_set_aside(v_forward, p_from, p_operator);
  v_refused := array(
    select case when u.id = any (v_aside) then null
                when u.id = any (v_forward) then 'NOT_RECORDED'
                when u.id = any (v_ids) then 'COMPENSATING' end
    from unnest(v_found) with ordinality u (id, ord) order by u.ord);
  return query
    select u.ord::integer, u.refused, false, p_from, null::text, null::bigint, null::text
    from unnest(v_refused) with ordinality u (refused, ord) where u.refused is not null;
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

-- Cancel processes and compensate the steps that have ended. The request is a response of a name that only this function uses; a process that
-- waits or is in the troubleshooting queue is queued, one that runs finds it with its next write. The same request again changes nothing and
-- reports who decided and when. Verdicts: CANCELING, or the status in which it ended (CANCELED, COMPENSATED); NOT_FOUND, ENDED, AMBIGUOUS,
-- DECIDED (it was canceled without compensation before: see operator, decided_at).
create or replace function pawl.process_compensate (
  p_process_ids uuid[], p_domains text[] default null, p_operator text default session_user, p_reason text default null)
  returns table (ord integer, verdict text, is_new boolean, decision text, operator text, decided_at bigint, domains text)
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
#variable_conflict use_column
declare
  v_operator text := pawl.operator_name(p_operator);
  v_found bigint[];
  v_names text[]; -- of domains, where several have the process
  v_open bigint[];
  v_stored bigint[];
  v_count integer;
  v_tsq uuid[];
  v_tsq_domains text[];
begin
  perform pawl.decision_guard(p_process_ids, p_domains, p_reason);
  select array_agg(f.id order by f.ord), array_agg(f.domains order by f.ord) into v_found, v_names
  from pawl.commands_find(p_process_ids, pawl.process_domains(p_process_ids, p_domains)) f;
  perform from pawl.process p where p.id = any (v_found) order by p.id for update; -- as pawl.command_cancel: the first of both decides
  v_open := array(
    select distinct u.id from unnest(v_found) u (id)
    where u.id is not null and not exists (select from pawl.outcome o where o.id = u.id)
      and not exists (select from pawl.lease l where l.id = u.id and l.cancel) order by 1);
  v_count := cardinality(v_open);
  if v_count > 0 then
    v_stored := array(
      select u.id
      from unnest(v_open) with ordinality u (id, ord)
      join pawl.process_respond(
        v_open, array_fill('$cancel'::text, array[v_count]), array_fill('cancel'::text, array[v_count]),
        array_fill(jsonb_build_object('$cancel', jsonb_build_object('operator', v_operator, 'reason', p_reason)), array[v_count]),
        v_operator, p_merge => false) r on r.ord = u.ord
      where r.verdict in ('RESUMED', 'STORED'));
    select array_agg(c.command_id order by c.id), array_agg(n.name order by c.id) into v_tsq, v_tsq_domains
    from pawl.tsq t
    join pawl.command c on c.id = t.id
    join pawl.domain_name n on n.id = c.domain_id
    where t.id = any (v_open);
    if v_tsq is not null then
      perform from pawl.command_decide(v_tsq, v_tsq_domains, 'retry', p_operator, p_reason, null);
    end if;
  end if;
  return query
    select u.ord::integer,
           case when u.names is not null then 'AMBIGUOUS'
                when p.id is null then 'NOT_FOUND'
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
      select r.id, r.actor, r.at from pawl.process_response r where r.id = u.id and r.name = '$cancel' limit 1) r on true
    left join lateral (
      select d.* from pawl.decision_last(u.id) d
      where d.decision = 'cancel' and r.id is null
        and (o.status = 'CANCELED' or exists (select from pawl.lease l where l.id = u.id and l.cancel))) d on true
    order by u.ord;
end
$$;
