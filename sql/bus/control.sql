-- control.sql - who decides, and the audit of decisions about what is no command and no process: domains, limits, schedules, keys, bulk
-- operations. Decisions about commands and processes are events of theirs: bus/audit.sql.
--
-- Errors: QU001 an operator or a reason that is too long.

-- Who decides, as the audit records it. Roles that may decide (administrators; pods, which know who asked them) name the operator
-- themselves. Any other caller is recorded by its own name, with what it says about itself in brackets, as over HTTP.
create or replace function pawl.operator_name (p_operator text)
  returns text
  language plpgsql stable
as $$
begin
  if char_length(p_operator) > 400 then
    raise exception 'operator must have at most 400 characters, got %', char_length(p_operator) using errcode = 'QU001';
  end if;
  return case when coalesce(p_operator, session_user) = session_user then session_user
              when has_function_privilege(session_user, 'pawl.command_decide(uuid[],text[],text,text,text,jsonb)', 'execute') then p_operator
              else format('%s (%s)', session_user, p_operator) end;
end
$$;

-- What the audit says beside the operator of a decision: the reason, and the login that named another operator.
create or replace function pawl.decision_details (p_operator text, p_reason text)
  returns jsonb
  language sql stable
as $$
  select nullif(jsonb_strip_nulls(jsonb_build_object('reason', p_reason,
    'login', case when p_operator <> session_user and not starts_with(p_operator, session_user || ' (') then session_user end)), '{}')
$$;

-- Records a decision, in its own transaction, so a decision and its row commit together. p_subject: 'domain', 'schedule' and so on; p_name: which
-- one; p_action: 'pause', 'delete' and so on. p_operator null: the session's user. p_details: what was decided, an object; null: the action says it all.
create or replace function pawl.control_add (
  p_subject text, p_name text, p_action text, p_operator text, p_reason text, p_details jsonb default null)
  returns void
  language plpgsql
as $$
begin
  if char_length(p_reason) > 1000 then
    raise exception 'reason must have at most 1000 characters, got %', char_length(p_reason) using errcode = 'QU001';
  end if;
  insert into pawl.control_event (at, subject, name, action, operator, login, reason, details)
  values (pawl.now(), p_subject, p_name, p_action, pawl.operator_name(p_operator), session_user, p_reason, p_details);
end
$$;

-- Deletes up to p_limit decisions that are older than p_cutoff, the oldest first. Ids grow with the time, so no index on the time is needed.
create or replace function pawl.control_prune (p_limit integer, p_cutoff timestamptz)
  returns bigint
  language plpgsql
as $$
declare
  v_gone bigint;
begin
  delete from pawl.control_event e
  where e.at < p_cutoff
    and e.id = any (array(select o.id from pawl.control_event o order by o.id limit p_limit for update skip locked));
  get diagnostics v_gone = row_count;
  return v_gone;
end
$$;
