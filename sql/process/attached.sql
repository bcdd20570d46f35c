-- attached.sql - the rows of processes, attached to their commands: they follow what the bus does with a command. sql/app/attached.sql joins it.
--
-- Lock order: process rows by id; see the callers for what they lock then.

-- Commands were sent: new processes have their rows, and what steps of processes sent is known by the process.
create or replace function pawl.process_attached_write (p_domain text, p_reply_to text[], p_made bigint[])
  returns boolean
  language plpgsql
as $$
begin
  if cardinality(p_made) > 0 and p_domain like 'process:%' then
    perform pawl.process_create(p_domain, p_made);
  end if;
  if cardinality(p_made) > 0 and exists (select from unnest(p_reply_to) r where r like 'response:%') then
    perform pawl.process_sent_note(p_made);
  end if;
  return true;
end
$$;

-- The same. Written to be inlined, because for nearly all commands there is nothing to do.
create or replace function pawl.process_attached_sent (p_domain text, p_reply_to text[], p_made bigint[])
  returns boolean
  language sql
as $$
  select case when p_domain like 'process:%' or p_reply_to is not null then pawl.process_attached_write(p_domain, p_reply_to, p_made) end
$$;

-- What an activation of a process continues from, as pawl.process_load reads it. Written to be inlined; null also for what is large.
create or replace function pawl.process_attached_loaded (p_domain text, p_id bigint, p_token bigint)
  returns jsonb
  language sql
as $$
  select case when p_domain like 'process:%' then pawl.process_loaded(p_id, p_token) end
$$;

-- The processes that the ends of these commands and children have resumed and started.
create or replace function pawl.process_attached_resumed (p_ids bigint[], p_offers jsonb)
  returns jsonb
  language plpgsql
as $$
declare
  v_ids bigint[] := array(
    select pawl.process_target_id(c.reply_to) from pawl.command c where c.id = any (p_ids) and c.reply_to like 'response:%');
begin
  return case when cardinality(v_ids) > 0 then pawl.resume_started(v_ids, p_offers) end;
end
$$;

-- Why a repeated start is refused: by its deadline, also by one that only the first start gave. Null: it is not, or the domain has no processes.
create or replace function pawl.process_attached_difference (p_domain text, p_domain_id integer, p_command_id uuid, p_deadline text)
  returns text
  language sql stable
as $$
  select case when p_domain like 'process:%' then pawl.process_deadline_refusal(p_domain_id, p_command_id, p_deadline) end
$$;

-- A process that is being compensated, or is to be, is not canceled: what is left to compensate would be dropped.
create or replace function pawl.process_cancel_verdict (p_id bigint)
  returns text
  language sql stable
as $$
  select case when pawl.process_is_compensated(p_id) then 'COMPENSATING' end
$$;

-- They do not wait any more. What they have sent and what is still open is canceled; children are compensated, unless the process was canceled.
-- The row of a process that waits is locked by the caller; another one may be locked by a transaction, which is not waited for.
create or replace function pawl.process_attached_ended (p_ids bigint[], p_event text)
  returns void
  language sql
as $$
  update pawl.process p set wait = null, waits = null
  where p.id = any (array(select w.id from pawl.process w where w.id = any (p_ids) and w.wait is not null order by w.id for update skip locked));
  select pawl.process_orphan_note(p_ids, p_event = 'OPERATOR_COMPLETE')
$$;

-- A process that another transaction has locked, because it stores a response, stays for the next scan.
create or replace function pawl.process_prunable (p_ids bigint[])
  returns bigint[]
  language plpgsql
as $$
declare
  v_processes bigint[] := array(select p.id from pawl.process p where p.id = any (p_ids) order by p.id for update skip locked);
begin
  return array(
    select u.id from unnest(p_ids) u (id)
    left join unnest(v_processes) l (id) on l.id = u.id
    where l.id is not null or not exists (select from pawl.process p where p.id = u.id));
end
$$;

create or replace function pawl.process_pruned (p_ids bigint[])
  returns void
  language plpgsql
as $$
begin
  delete from pawl.process_step s where s.id = any (p_ids);
  delete from pawl.process_response r where r.id = any (p_ids);
  delete from pawl.process_sent s where s.id = any (p_ids);
  delete from pawl.process p where p.id = any (p_ids);
end
$$;

-- Why a process of this id is not started; null: the domain has no processes.
create or replace function pawl.process_refusal (p_domain text, p_process_id uuid, p_refusal text)
  returns text
  language sql stable
as $$
  select format('process %s exists already: %s', p_process_id, regexp_replace(p_refusal, '^payload ', 'state ')) where p_domain like 'process:%'
$$;
