-- reserved.sql - what processes reserve of the bus: their domains, and responses as targets of replies. sql/app/reserved.sql joins it.

create or replace function pawl.process_domains ()
  returns table (pattern text, commands text, refuses_replies boolean)
  language sql immutable
as $$
  select '^process:', 'processes', true
$$;

-- Is it "response:NUMBER/NAME", a response to the process with this number? Only a session that may run processes names one.
create or replace function pawl.process_target_is_open (p_target text)
  returns boolean
  language sql stable
as $$
  select p_target ~ '^response:[0-9]{1,18}/[$]reply[.][^/]+$' and octet_length(p_target) <= 450
     and has_function_privilege(session_user, 'pawl.process_load(bigint[],bigint[],bigint)', 'execute')
$$;

-- false: it is no target of processes.
create or replace function pawl.process_target_deliver (p_target text, p_replies jsonb[])
  returns boolean
  language plpgsql
as $$
begin
  if p_target like 'response:%' then
    perform pawl.process_reply(pawl.process_target_id(p_target), substring(p_target from '/(.*)$'), p_replies);
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
  select substring(p_target from '^response:([0-9]+)/')::bigint
$$;

-- The record of the step that awaits it: "ship[2]" of "response:7/$reply.ship[2]".
create or replace function pawl.process_target_record (p_target text)
  returns text
  language sql immutable
as $$
  select substring(p_target from '/[$]reply[.](.*)$')
$$;

-- A process that ended as FAILED after all its compensations is COMPENSATED.
create or replace function pawl.process_reply_status (p_id bigint, p_status text)
  returns text
  language sql stable
as $$
  select case when p_status = 'FAILED' and exists (select from pawl.process p where p.id = p_id and p.phase = 'compensated') then 'COMPENSATED'
              else p_status end
$$;
