-- operate.sql - what people do to commands: cancel, and decide what waits in the troubleshooting queue.
--
-- Each function takes ids and returns a row per item; the operator's name goes into the audit.
-- Verdicts: CANCELED, CANCELING (it runs; its worker is told at the next heartbeat), COMPLETED, PENDING, ENDED (nothing to
-- do any more), NOT_IN_TSQ, NOT_FOUND.

-- The newest command of this id: ids are unique per domain.
create or replace function pawl.command_number (p_command_id uuid)
  returns bigint
  language sql stable
as $$
  select c.id from pawl.command c where c.command_id = p_command_id order by c.id desc limit 1
$$;

create or replace function pawl.cancel_one (p_id bigint, p_reason text, p_operator text)
  returns text
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
begin
  if p_id is null then
    return 'NOT_FOUND';
  end if;
  -- It may be claimed or come back between two looks, and each statement looks anew.
  for v_try in 1..5 loop
    -- Who asked and why is noted now: the worker that ends it does not know.
    with asked as (
      update pawl.lease l set cancel = true where l.id = p_id and not l.cancel returning l.id, l.domain_id, l.attempt
    )
    insert into pawl.audit (id, at, domain_id, attempt, event, actor, details)
    select a.id, pawl.now(), a.domain_id, a.attempt, 'OPERATOR_CANCEL', p_operator,
           case when p_reason is not null then jsonb_build_object('reason', p_reason) end
    from asked a;
    if found or exists (select from pawl.lease l where l.id = p_id and l.cancel) then
      perform pawl.replay_barrier();
      return 'CANCELING';
    end if;
    if cardinality(pawl.finish(array[p_id], 'CANCELED', 'CANCELED', null, p_reason, p_operator)) > 0 then
      return 'CANCELED';
    end if;
    if exists (select from pawl.outcome o where o.id = p_id) then
      perform pawl.replay_barrier();
      return 'ENDED';
    end if;
  end loop;
  raise exception 'command is moving too fast to be canceled' using errcode = '55P03';
end
$$;

create or replace function pawl.cancel (p_command_ids uuid[], p_reason text, p_operator text)
  returns table (ord integer, verdict text)
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
#variable_conflict use_column
begin
  perform pawl.array_check('command_ids', p_command_ids, cardinality(p_command_ids), 'QU001');
  return query
    -- Materialised in the order of ids, so that two operators cannot wait for each other.
    with item as materialized (
      select u.ord::integer as ord, pawl.command_number(u.command_id) as id
      from unnest(p_command_ids) with ordinality u (command_id, ord)
      order by 2
    ), done as materialized (
      select i.ord, pawl.cancel_one(i.id, p_reason, p_operator) as verdict from item i
    )
    select d.ord, d.verdict from done d order by d.ord;
end
$$;

-- p_action: retry (attempts begin anew), cancel, complete.
create or replace function pawl.tsq_decide (
  p_command_ids uuid[], p_action text, p_operator text, p_reason text, p_result jsonb)
  returns table (ord integer, verdict text)
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
#variable_conflict use_column
declare
  v_now timestamptz := pawl.now();
  v_all bigint[] := array(
    select pawl.command_number(u.c) from unnest(p_command_ids) with ordinality u (c, ord) order by u.ord);
  v_ids bigint[];
begin
  perform pawl.array_check('command_ids', p_command_ids, cardinality(p_command_ids), 'QU001');
  v_ids := array(select t.id from pawl.tsq t where t.id = any (v_all) order by t.id for update);
  case p_action
    when 'retry' then
      perform pawl.drawing(2);
      with taken as (
        delete from pawl.tsq t where t.id = any (v_ids) returning t.id, t.domain_id, t.attempt
      ), lined as (
        insert into pawl.ready (domain_id, priority, pos, id, attempt, max_attempts, extras)
        select c.domain_id, c.priority, nextval('pawl.command_seq'), c.id, 0, c.max_attempts,
               c.reply_to is not null or c.batch_id is not null
        from taken t join pawl.command c on c.id = t.id
      )
      insert into pawl.audit (id, at, domain_id, attempt, event, actor, details)
      select t.id, v_now, t.domain_id, t.attempt, 'OPERATOR_RETRY', p_operator,
             case when p_reason is not null then jsonb_build_object('reason', p_reason) end
      from taken t;
    when 'cancel' then
      perform pawl.finish(v_ids, 'CANCELED', 'OPERATOR_CANCEL', null, p_reason, p_operator);
    when 'complete' then
      perform pawl.finish(v_ids, 'COMPLETED', 'OPERATOR_COMPLETE', p_result, p_reason, p_operator);
    else
      raise exception 'action must be retry, cancel or complete' using errcode = 'QU001';
  end case;
  return query
    select n.ord_::integer, case when n.id is null then 'NOT_FOUND'
                       when not n.id = any (v_ids) then 'NOT_IN_TSQ'
                       when p_action = 'retry' then 'PENDING'
                       when p_action = 'cancel' then 'CANCELED'
                       else 'COMPLETED' end
    from unnest(v_all) with ordinality n (id, ord_)
    order by 1;
end
$$;
