-- operate.sql - decisions of operators: cancel commands, and retry, cancel or complete those in the troubleshooting queue.
--
-- Each function takes ids and returns a row per item. The audit records each decision with its operator. A repeated decision, whose first
-- response was lost, changes nothing and returns who decided what and when; a different one is refused with the same fields.
-- Verdicts: CANCELED, CANCELING (it runs; its worker learns it at the next heartbeat), COMPLETED, PENDING; or why nothing was done:
-- DECIDED (another decision was made: see decision, operator, decided_at), ENDED (it ended by itself), NOT_IN_TSQ, NOT_FOUND,
-- AMBIGUOUS (several domains have this id: see domains), LOCKED (one of several, whose attached rows another transaction has locked: see
-- pawl.attached_lock; try again), or what a module says about one that must not be canceled (pawl.attached_cancel_verdict).
-- Lock order: attached rows, then lease, delayed, tsq and ready rows, each by id; then what pawl.after_end locks, once. Only
-- pawl.command_cancel may have to start over, when a command moves while it reads.
-- Errors: QU001 an argument is out of range. QU005 several domains have a command of this id, and none was named.

-- The numbers of commands. A NULL domain matches any. id is NULL for an unknown command, and for an id that several domains
-- have; then domains names them.
create or replace function pawl.commands_find (p_command_ids uuid[], p_domains text[])
  returns table (ord integer, id bigint, domains text)
  language sql stable
as $$
  select u.ord::integer, case when count(c.id) = 1 then min(c.id) end,
         case when count(c.id) > 1 then string_agg(c.name, ', ' order by c.name) end
  from unnest(p_command_ids, p_domains) with ordinality u (command_id, domain, ord)
  left join lateral (
    select c.id, n.name
    from pawl.command c
    cross join lateral (select n.name from pawl.domain_name n where n.id = c.domain_id limit 1) n
    where c.command_id = u.command_id and (u.domain is null or n.name = u.domain)) c on true
  group by u.ord
$$;

-- One of them; NULL: unknown.
create or replace function pawl.command_number (p_command_id uuid, p_domain text)
  returns bigint
  language plpgsql stable
as $$
declare
  v_found record;
begin
  select f.id, f.domains into strict v_found from pawl.commands_find(array[p_command_id], array[p_domain]) f;
  if v_found.domains is not null then
    raise exception 'command % is in several domains: %; name one of them', p_command_id, v_found.domains using errcode = 'QU005';
  end if;
  return v_found.id;
end
$$;

create or replace function pawl.command_number (p_command_id uuid)
  returns bigint
  language sql stable
as $$
  select pawl.command_number(p_command_id, null)
$$;

-- What an operator decided about a command last; no row: nothing.
create or replace function pawl.decision_last (p_id bigint)
  returns table (decision text, operator text, reason text, decided_at timestamptz)
  language sql stable
as $$
  select case a.event when 'OPERATOR_RETRY' then 'retry' when 'OPERATOR_COMPLETE' then 'complete' else 'cancel' end,
         a.actor, a.details ->> 'reason', a.at
  from pawl.event a
  where a.id = p_id and (a.event in ('OPERATOR_RETRY', 'OPERATOR_CANCEL', 'OPERATOR_COMPLETE')
                         or a.event = 'CANCELED' and a.actor is not null) -- canceled while it waited
  order by a.at desc, a.attempt desc
  limit 1
$$;

-- The rows that a decision returns. p_verdicts: of the commands that it changed, NULL for the others. p_otherwise: for a command that is
-- not where the decision needs it, and about which nothing was decided.
create or replace function pawl.decisions_repeated (
  p_command_ids uuid[], p_domains text[], p_verdicts text[], p_decision text, p_operator text, p_reason text, p_result jsonb,
  p_otherwise text)
  returns table (ord integer, verdict text, is_new boolean, decision text, operator text, decided_at bigint, domains text)
  language sql stable
as $$
  select f.ord,
         case when v.verdict is not null then v.verdict
              when f.domains is not null then 'AMBIGUOUS'
              when f.id is null then 'NOT_FOUND'
              when s.same then case p_decision when 'retry' then 'PENDING' when 'complete' then 'COMPLETED'
                                 else case when o.id is null then 'CANCELING' else o.status end end
              when l.decision is not null and (l.decision <> 'cancel' or o.id is null or o.status = 'CANCELED')
                   and not (l.decision = 'retry' and p_otherwise = 'ENDED') then 'DECIDED' -- a retry decides nothing about what ended later
              else p_otherwise end, -- also when it ended before its worker learned of the cancellation
         v.verdict is not null, l.decision, l.operator, pawl.micros(l.decided_at), f.domains
  from pawl.commands_find(p_command_ids, p_domains) f
  join unnest(p_verdicts) with ordinality v (verdict, ord) on v.ord = f.ord
  left join pawl.outcome o on o.id = f.id
  left join lateral (select * from pawl.decision_last(f.id)) l on true
  left join lateral (
    select l.decision = p_decision and l.operator = p_operator and l.reason is not distinct from p_reason
           and case p_decision when 'retry' then true
                               when 'cancel' then o.id is null or o.status = 'CANCELED'
                               else o.result is not distinct from p_result end as same) s on true
  order by f.ord
$$;

-- The present status of a command, for the answer to a decision that did not change it. NULL: unknown. Volatile: it reads what was committed while the
-- decision waited for a lock.
create or replace function pawl.decided_status (p_command_id uuid, p_domain text)
  returns text
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
begin
  return (select pawl.attached_status(f.id) from pawl.commands_find(array[p_command_id], array[p_domain]) f where f.id is not null);
end
$$;

-- Raises when an argument of a decision is out of range.
create or replace function pawl.decision_guard (p_command_ids uuid[], p_domains text[], p_reason text)
  returns void
  language plpgsql
as $$
begin
  perform pawl.array_check('command_ids', p_command_ids, cardinality(p_command_ids), 'QU001'),
          pawl.array_check('domains', p_domains, cardinality(p_command_ids), 'QU001', true);
  if array_position(p_command_ids, null) is not null then
    raise exception 'command_ids must not contain null' using errcode = 'QU001';
  end if;
  if char_length(p_reason) > 2000 then
    raise exception 'reason must have at most 2000 characters, got %', char_length(p_reason) using errcode = 'QU001';
  end if;
end
$$;

-- Ask for the cancellation of commands that run. Returns those. Operator and reason are recorded now: the worker that ends it does not know
-- them.
create or replace function pawl.cancel_ask (p_ids bigint[], p_operator text, p_reason text)
  returns bigint[]
  language plpgsql
as $$
declare
  v_now timestamptz;
  v_asked bigint[];
begin
  -- Not "for update": the transaction may stay open for long, and a process that runs records its steps meanwhile, under a key share lock.
  perform from pawl.lease l where l.id = any (p_ids) order by l.id for no key update;
  v_now := pawl.now(); -- under the lock: after the claim that it may have waited for
  with asked as (
    update pawl.lease l set cancel = true where l.id = any (p_ids) and not l.cancel returning l.id, l.domain_id, l.attempt
  ), recorded as (
    insert into pawl.event (id, at, domain_id, attempt, event, actor, details)
    select a.id, v_now, a.domain_id, a.attempt, 'OPERATOR_CANCEL', p_operator, pawl.decision_details(p_operator, p_reason)
    from asked a
  )
  select coalesce(array_agg(a.id), '{}') into v_asked from asked a;
  return v_asked;
end
$$;

-- Cancel commands wherever they are. A NULL domain matches any, a NULL operator for the session's user.
create or replace function pawl.command_cancel (
  p_command_ids uuid[], p_domains text[] default null, p_operator text default session_user, p_reason text default null)
  returns table (ord integer, verdict text, is_new boolean, decision text, operator text, decided_at bigint, domains text)
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
#variable_conflict use_column
declare
  v_operator text := pawl.operator_name(p_operator);
  v_ids bigint[];
  v_locked bigint[]; -- by other transactions
  v_left bigint[];
  v_asked bigint[] := '{}'::bigint[];
  v_ended bigint[] := '{}'::bigint[];
begin
  perform pawl.decision_guard(p_command_ids, p_domains, p_reason);
  v_ids := array(select f.id from pawl.commands_find(p_command_ids, p_domains) f order by f.ord);
  v_locked := pawl.attached_lock(v_ids);
  -- A command may be claimed or requeued between two statements, and each statement reads anew.
  for v_try in 1..6 loop
    v_left := array(
      select distinct i.id from unnest(v_ids) i (id)
      where i.id is not null and not i.id = any (v_ended || v_locked)
        and not exists (select from pawl.outcome o where o.id = i.id)
        and not exists (select from pawl.lease l where l.id = i.id and l.cancel)
        and pawl.attached_cancel_verdict(i.id) is null
      order by 1);
    exit when cardinality(v_left) = 0;
    if v_try = 6 then
      raise exception 'command is moving too fast to be canceled' using errcode = '55P03';
    end if;
    v_asked := v_asked || pawl.cancel_ask(v_left, v_operator, p_reason);
    v_left := array(select i from unnest(v_left) i where not i = any (v_asked) order by i);
    v_ended := v_ended || pawl.finish_without_replies(v_left, 'CANCELED', 'CANCELED', null, p_reason, v_operator);
  end loop;
  if cardinality(v_ended) > 0 then
    perform pawl.after_end(v_ended);
  end if;
  perform pawl.replay_barrier(); -- some rows may report what was decided earlier
  return query
    select d.ord,
           case when i.id = any (v_locked) then 'LOCKED' when d.is_new then d.verdict
                else coalesce(pawl.attached_cancel_verdict(i.id), d.verdict) end,
           d.is_new, d.decision, d.operator, d.decided_at, d.domains
    from pawl.decisions_repeated(p_command_ids, p_domains,
      array(select case when i.id = any (v_ended) then 'CANCELED' when i.id = any (v_asked) then 'CANCELING' end
            from unnest(v_ids) with ordinality i (id, n) order by i.n),
      'cancel', v_operator, p_reason, null, 'ENDED') d
    join unnest(v_ids) with ordinality i (id, n) on i.n = d.ord
    order by d.ord;
end
$$;

-- Queue commands of the troubleshooting queue, whose rows are locked, with their attempts reset.
create or replace function pawl.tsq_retry (p_ids bigint[], p_operator text, p_reason text)
  returns void
  language plpgsql
as $$
declare
  v_now timestamptz := pawl.now();
  v_deleted bigint;
  v_inserted bigint;
  v_domains integer[];
begin
  perform pawl.attached_retried(p_ids);
  delete from pawl.snooze s where s.id = any (p_ids); -- it may be snoozed as often again
  perform pawl.command_allocation_lock();
  with taken as (
    delete from pawl.tsq t where t.id = any (p_ids) returning t.id, t.domain_id, t.attempt
  ), queued as (
    insert into pawl.ready (domain_id, priority, pos, id, attempt, max_attempts, extras, order_key)
    select c.domain_id, c.priority, nextval('pawl.command_seq'), c.id, 0, c.max_attempts,
           c.reply_to is not null or c.batch_id is not null or c.order_key is not null or c.payload_bytes is not null,
           pawl.order_key_again(c.domain_id, c.order_key, c.id)
    from taken t join pawl.command c on c.id = t.id
    returning domain_id
  ), recorded as (
    insert into pawl.event (id, at, domain_id, attempt, event, actor, details)
    select t.id, v_now, t.domain_id, t.attempt, 'OPERATOR_RETRY', p_operator, pawl.decision_details(p_operator, p_reason)
    from taken t
  )
  select (select count(*) from taken), (select count(*) from queued), array(select distinct q.domain_id from queued q)
  into v_deleted, v_inserted, v_domains;
  perform pawl.moved(v_deleted, v_inserted);
  perform pawl.wake_later(v_domains);
end
$$;

-- p_decision: retry (attempts are reset), cancel, complete (with a result, or none).
create or replace function pawl.command_decide (
  p_command_ids uuid[], p_domains text[], p_decision text, p_operator text default session_user, p_reason text default null,
  p_result jsonb default null)
  returns table (ord integer, verdict text, is_new boolean, decision text, operator text, decided_at bigint, domains text)
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
#variable_conflict use_column
declare
  v_operator text := pawl.operator_name(p_operator);
  v_all bigint[];
  v_locked bigint[]; -- by other transactions
  v_ids bigint[];
begin
  perform pawl.decision_guard(p_command_ids, p_domains, p_reason);
  if (p_decision in ('retry', 'cancel', 'complete')) is not true then
    raise exception 'decision must be retry, cancel or complete, got %', coalesce(p_decision, 'null') using errcode = 'QU001';
  end if;
  if p_decision <> 'complete' and p_result is not null then
    raise exception 'result is for complete, not for %', p_decision using errcode = 'QU001';
  end if;
  perform pawl.json_check('result', array[p_result], 'QU001');
  v_all := array(select f.id from pawl.commands_find(p_command_ids, p_domains) f order by f.ord);
  v_locked := pawl.attached_lock(v_all);
  v_ids := array(select t.id from pawl.tsq t where t.id = any (v_all) and t.id <> all (v_locked) order by t.id for update);
  case p_decision
    when 'retry' then
      perform pawl.tsq_retry(v_ids, v_operator, p_reason);
    when 'cancel' then
      perform pawl.finish(v_ids, 'CANCELED', 'OPERATOR_CANCEL', null, p_reason, v_operator);
    when 'complete' then
      perform pawl.finish(v_ids, 'COMPLETED', 'OPERATOR_COMPLETE', p_result, p_reason, v_operator);
  end case;
  perform pawl.replay_barrier(); -- some rows may report what was decided earlier
  return query
    select d.ord, case when i.id = any (v_locked) then 'LOCKED' else d.verdict end, d.is_new, d.decision, d.operator, d.decided_at, d.domains
    from pawl.decisions_repeated(p_command_ids, p_domains,
      array(select case when i.id = any (v_ids) then
                     case p_decision when 'retry' then 'PENDING' when 'cancel' then 'CANCELED' else 'COMPLETED' end end
            from unnest(v_all) with ordinality i (id, n) order by i.n),
      p_decision, v_operator, p_reason, p_result, 'NOT_IN_TSQ') d
    join unnest(v_all) with ordinality i (id, n) on i.n = d.ord
    order by d.ord;
end
$$;

-- Both by ids alone.
create or replace function pawl.cancel (
  p_command_ids uuid[], p_reason text default null, p_operator text default session_user)
  returns table (ord integer, verdict text)
  language sql security definer set search_path = pawl, pg_temp
as $$
  select c.ord, c.verdict from pawl.command_cancel(p_command_ids, null, p_operator, p_reason) c
$$;

create or replace function pawl.tsq_decide (
  p_command_ids uuid[], p_action text, p_operator text default session_user, p_reason text default null,
  p_result jsonb default null)
  returns table (ord integer, verdict text)
  language sql security definer set search_path = pawl, pg_temp
as $$
  select d.ord, d.verdict from pawl.command_decide(p_command_ids, null, p_action, p_operator, p_reason, p_result) d
$$;
