-- decide.sql - processes end, go to the troubleshooting queue or are compensated because an operator or their deadline says so.
--
-- Who decides about a process from outside calls pawl.process_decide: an operator who cancels with compensation (operate.sql), a deadline that passes, also
-- while the code of a process ends (deadline.sql), and an activation that writes to a process that was canceled (write.sql). Two endings do not: see ADR 32.
--
-- Invariants
--   1. The caller has locked the processes' rows or leases, and has seen under these locks that nothing was decided before. What an activation
--      decides because a step has failed is part of its write: pawl.write_phases, pawl.write_ends.
--   2. One that has not begun ends at once, in place of being compensated: there is nothing to compensate, and perhaps no worker that would run it.
--   3. One whose deadline is decided about has its lease locked first: what its worker is sending is known then, and whether it has just completed, which
--      takes no lock on its row.
--   4. The decision is recorded with it: that of a deadline to compensate what has begun, and that of an operator, as a response of the kind cancel; other
--      decisions of a deadline as one of the kind deadline, which resumes nothing. deadline_due is null afterwards.
-- Lock order: leases by id; then as pawl.commands_hold, pawl.finish, pawl.process_respond and pawl.command_decide.
-- Errors: 55P03 a process is moving; its caller tries again.

-- What the audit has of the decision of a deadline, but for that to compensate what has begun.
create or replace function pawl.decision_note (p_ids bigint[], p_action text)
  returns void
  language plpgsql
as $$
begin
  insert into pawl.process_response (id, kind, name, key, number, payload, at, met)
  select p.id, 'deadline', '', 'deadline', nextval('pawl.response_seq'),
         jsonb_build_object('action', p_action, 'deadline', pawl.iso(p.deadline)), pawl.now(),
         case when p.wait is not null then pawl.record_text(p.step, p.item, p.undo) end
  from pawl.process p
  where p.id = any (p_ids) and not exists (select from pawl.process_cancellations(p.id) c where c.key = 'deadline')
  order by p.id
  on conflict do nothing; -- decided before, by a clock that was ahead
end
$$;

-- Ask for the compensation of processes, by a response of this key: one that waits is queued, and one that runs learns of it with its next write.
-- Returns those for which it was not asked before.
create or replace function pawl.decision_ask (p_ids bigint[], p_key text, p_operator text, p_reason text)
  returns bigint[]
  language plpgsql
as $$
declare
  v_count integer := cardinality(p_ids);
begin
  if v_count = 0 then
    return p_ids;
  end if;
  return array(
    select u.id
    from unnest(p_ids) with ordinality u (id, ord)
    join pawl.process_respond(
      p_ids, array_fill(''::text, array[v_count]), array_fill(p_key, array[v_count]),
      array(select case p_key when 'deadline' then jsonb_build_object('action', 'compensate', 'deadline', pawl.iso(p.deadline), 'reason', p_reason)
                              else jsonb_build_object('operator', p_operator, 'reason', p_reason) || coalesce(pawl.decision_details(p_operator, p_reason), '{}') end
            from unnest(p_ids) with ordinality i (id, ord) left join pawl.process p on p.id = i.id order by i.ord),
      p_operator, 'cancel') r on r.ord = u.ord
    where r.verdict in ('RESUMED', 'STORED'));
end
$$;

-- Queue those that are in the troubleshooting queue, so that they are compensated.
create or replace function pawl.decision_retry (p_ids bigint[], p_operator text, p_reason text)
  returns void
  language plpgsql
as $$
begin
  perform from (
    select array_agg(c.command_id order by c.id) as ids, array_agg(n.name order by c.id) as domains
    from pawl.tsq t
    join pawl.command c on c.id = t.id
    cross join lateral (select n.name from pawl.domain_name n where n.id = c.domain_id limit 1) n
    where t.id = any (p_ids)) t
  cross join lateral pawl.command_decide(t.ids, t.domains, 'retry', p_operator, p_reason, null)
  where t.ids is not null;
end
$$;

-- The action compensate of pawl.process_decide.
create or replace function pawl.decision_compensate (p_ids bigint[], p_cause text, p_operator text, p_reason text)
  returns bigint[]
  language plpgsql
as $$
declare
  v_idle bigint[] := pawl.commands_hold(array(select i from unnest(p_ids) i where not pawl.process_has_begun(i)));
  v_operator text;
  v_asked bigint[];
begin
  if p_cause = 'deadline' then
    if exists (select from pawl.outcome o where o.id = any (p_ids)) then
      raise exception 'process number % has just ended', p_ids[1] using errcode = '55P03';
    end if;
    if cardinality(v_idle) > 0 then
      perform pawl.decision_note(v_idle, 'compensate');
      update pawl.process p set phase = 'compensated' where p.id = any (v_idle);
      perform pawl.finish(v_idle, 'FAILED', 'FAILED', null, p_reason, null);
    end if;
    return pawl.decision_ask(array(select i from unnest(p_ids) i where i <> all (v_idle)), 'deadline', null, p_reason);
  end if;
  v_operator := pawl.operator_name(p_operator);
  v_asked := pawl.decision_ask(p_ids, 'cancel', v_operator, p_reason);
  if cardinality(v_idle) > 0 then
    perform pawl.finish(v_idle, 'CANCELED', 'CANCELED', null, p_reason, v_operator);
  end if;
  perform pawl.decision_retry(p_ids, p_operator, p_reason);
  return v_asked;
end
$$;

-- p_action:
--   cancel        end as CANCELED, without compensation
--   fail          end as FAILED. Children are compensated, as by reject
--   troubleshoot  go to the troubleshooting queue
--   compensate    be compensated. One that has not begun ends at once, as CANCELED by an operator, as COMPENSATED by its deadline
-- p_cause:
--   operator      p_operator says so, because of p_reason
--   deadline      it has passed
--   late          it has passed, and the function of the process has ended and had no call in which it could learn of it: instead of being compensated
--                 it goes to the troubleshooting queue, and a retry completes it
-- Returns those for which compensation was asked, and was not before.
create or replace function pawl.process_decide (p_ids bigint[], p_action text, p_cause text, p_operator text default null, p_reason text default null)
  returns bigint[]
  language plpgsql
as $$
declare
  v_is_over constant boolean := p_cause = 'late' and p_action = 'compensate';
  v_reason text := case when p_cause = 'operator' then p_reason else pawl.deadline_error() || case when v_is_over
    then ', and its function had ended: nothing was compensated, and a retry completes it' else '' end end;
begin
  if cardinality(p_ids) = 0 then
    return p_ids;
  end if;
  if p_cause <> 'operator' then
    perform from pawl.lease l where l.id = any (p_ids) order by l.id for update;
    update pawl.process p set deadline_due = null where p.id = any (p_ids);
  end if;
  if p_action = 'cancel' then
    perform pawl.finish_canceled(p_ids);
  elsif p_action = 'fail' then
    perform pawl.decision_note(p_ids, p_action), pawl.process_orphan_note(p_ids, true);
    if cardinality(pawl.finish(p_ids, 'FAILED', 'FAILED', null, v_reason, null)) < cardinality(p_ids) then
      raise exception 'process number % is moving', p_ids[1] using errcode = '55P03';
    end if;
  elsif p_action = 'troubleshoot' or v_is_over then
    perform pawl.decision_note(p_ids, p_action);
    if pawl.give_up_anywhere(p_ids, v_reason) < cardinality(p_ids) then
      raise exception 'process number % is moving', p_ids[1] using errcode = '55P03';
    end if;
    update pawl.process p set wait = null, waits = null where p.id = any (p_ids) and p.wait is not null;
  else
    return pawl.decision_compensate(p_ids, p_cause, p_operator, v_reason);
  end if;
  return '{}'::bigint[];
end
$$;
