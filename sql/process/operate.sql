-- operate.sql - what operators do to processes: retry, cancel, complete. Built on the decisions about commands (bus/operate.sql), which
-- remember operator and reason and answer a repeated decision with what was decided.
--
-- Lock order: process rows by id, then as pawl.command_decide and pawl.command_cancel.
-- Errors: QP001 an argument is out of range. QP005 the process has not recorded the step named. QP006 it is being
-- compensated: records of its steps say what is left to compensate.

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

-- Have processes in the troubleshooting queue tried again: see pawl.process_retried. p_from: the records of this step and of everything that ended after it began
-- are deleted, and replies to them set aside, so that they are run again. The audit keeps
-- their names, errors and times; not their results, which readers of the audit may not see.
create or replace function pawl.process_retry (
  p_process_ids uuid[], p_domains text[] default null, p_operator text default session_user, p_reason text default null,
  p_from text default null)
  returns table (ord integer, verdict text, is_new boolean, decision text, operator text, decided_at bigint, domains text)
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
#variable_conflict use_column
declare
  v_domains text[];
  v_ids bigint[];
  v_missing uuid;
begin
  perform pawl.decision_guard(p_process_ids, p_domains, p_reason);
  v_domains := pawl.process_domains(p_process_ids, p_domains);
  v_ids := array(
    select p.id from pawl.commands_find(p_process_ids, v_domains) f
    join pawl.process p on p.id = f.id
    join pawl.tsq t on t.id = f.id
    order by p.id for update of p);
  if p_from is not null then
    select c.command_id into v_missing from pawl.process p join pawl.command c on c.id = p.id
    where p.id = any (v_ids) and p.phase <> 'forward' limit 1;
    if found then
      raise exception 'process % is being compensated: it can be retried, but not from a step', v_missing using errcode = 'QP006';
    end if;
    select c.command_id into v_missing from pawl.command c
    where c.id = any (v_ids) and not exists (select from pawl.process_step s where s.id = c.id and s.name = p_from) limit 1;
    if found then
      raise exception 'process % has not recorded step "%"', v_missing, p_from using errcode = 'QP005';
    end if;
    with gone as (
      delete from pawl.process_step s
      using (
        select s.id, min(s.started_at) as since from pawl.process_step s
        where s.id = any (v_ids) and split_part(s.name, ':', 1) = p_from
        group by s.id) f
      where s.id = f.id and s.ended_at >= f.since
      returning s.id, s.name, s.attempt, s.error, s.ended_at
    ), set_aside as (
      update pawl.process_response r set name = '$gone.' || substr(r.name, 8)
      where r.id = any (v_ids) and r.name in (select '$reply.' || g.name from gone g where g.id = r.id)
    )
    insert into pawl.event (id, at, domain_id, attempt, event, actor, details)
    select g.id, pawl.now(), c.domain_id, 0, 'OPERATOR_RETRY', pawl.operator_name(p_operator),
           jsonb_build_object('from', p_from, 'deleted', jsonb_agg(jsonb_build_object('name', g.name, 'attempt', g.attempt,
             'error', g.error, 'ended_at', pawl.iso(g.ended_at)) order by g.ended_at))
    from gone g join pawl.command c on c.id = g.id
    group by g.id, c.domain_id;
  end if;
  return query select * from pawl.command_decide(p_process_ids, v_domains, 'retry', p_operator, p_reason, null);
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
