-- reserved.sql - what processes reserve of the bus: their domains, and responses as targets of replies. sql/app/reserved.sql joins it.

create or replace function pawl.process_domains ()
  returns table (pattern text, commands text, refuses_replies boolean, sender text)
  language sql immutable
as $$
  select '^process:', 'processes', true, null
$$;

-- Is it "response:" and a record as JSON, {"process": number, "step", "item", "undo", "aside"}? The step of that record gets the reply. Only a session that may run
-- processes names one.
create or replace function pawl.process_target_is_open (p_target text)
  returns boolean
  language sql stable
as $$
  select p_target like 'response:{%' and octet_length(p_target) <= 450 and exists (select from pawl.target_read(p_target))
     and has_function_privilege(session_user, 'pawl.process_load(bigint[],bigint[],bigint)', 'execute')
$$;

-- false: it is no target of processes.
create or replace function pawl.process_target_deliver (p_target text, p_replies jsonb[])
  returns boolean
  language plpgsql
as $$
begin
  if p_target like 'response:%' then
    perform pawl.process_reply(t.id, t.life, t.step, t.item, t.undo, t.aside, p_replies) from pawl.target_read(p_target) t;
    return true;
  end if;
  return false;
end
$$;

-- The process that gets the response; null: the target is no response.
create or replace function pawl.process_target_id (p_target text)
  returns bigint
  language sql immutable
as $$
  select t.id from pawl.target_read(p_target) t
$$;

-- The step that gets it, for people.
create or replace function pawl.process_target_step (p_target text)
  returns text
  language sql stable
as $$
  select pawl.record_text(t.step, t.item, t.undo, p_aside => t.aside) from pawl.target_read(p_target) t
$$;

-- A process that ended as FAILED after all its compensations is COMPENSATED.
create or replace function pawl.process_reply_status (p_id bigint, p_status text)
  returns text
  language sql stable
as $$
  select case when p_status = 'FAILED' and exists (select from pawl.process p where p.id = p_id and p.phase = 'compensated') then 'COMPENSATED'
              else p_status end
$$;
