-- attached.sql - rows of modules that are attached to commands: they follow what the bus does with a command. Each module has its own functions in
-- <module>/attached.sql; the bus calls these.

-- Commands were sent, in the same transaction: modules write what they know about them. p_reply_to: of all commands of the call, p_made: the new
-- ones.
create or replace function pawl.attached_sent (p_domain text, p_reply_to text[], p_made bigint[])
  returns boolean
  language sql
as $$
  select pawl.process_attached_sent(p_domain, p_reply_to, p_made)
$$;

-- What the module of a domain reads for its worker with a command that is leased by this token; null: nothing.
create or replace function pawl.attached_loaded (p_domain text, p_id bigint, p_token bigint)
  returns jsonb
  language sql
as $$
  select pawl.process_attached_loaded(p_domain, p_id, p_token)
$$;

-- What the ends of these commands have resumed and started on handlers of the caller (pawl.resume_started).
create or replace function pawl.attached_resumed (p_ids bigint[], p_offers jsonb)
  returns jsonb
  language sql
as $$
  select pawl.process_attached_resumed(p_ids, p_offers)
$$;

-- Why a command of this id is not sent: another one has it. p_refusal: which field differs.
create or replace function pawl.attached_refusal (p_domain text, p_command_id uuid, p_refusal text)
  returns text
  language sql stable
as $$
  select coalesce(pawl.process_refusal(p_domain, p_command_id, p_refusal), format('command %s exists already: %s', p_command_id, p_refusal))
$$;

-- Commands are being sent with a text for their module, one for each, null for those without: raises unless the domain has a module that reads them.
-- Only processes have one: their deadline.
create or replace function pawl.attached_check (p_domain text, p_attached text[])
  returns void
  language sql
as $$
  select pawl.process_deadlines_check(p_domain, p_attached)
$$;

-- They were sent, in the same transaction. p_made: the new ones, p_ids and p_attached: of all commands of the call.
create or replace function pawl.attached_write (p_made bigint[], p_ids uuid[], p_attached text[])
  returns void
  language sql
as $$
  select pawl.process_deadlines_set(p_made, p_ids, p_attached)
$$;

-- Why a repeated send is refused that differs from the first one in nothing that the bus knows; null: it is not.
create or replace function pawl.attached_difference (p_domain text, p_domain_id integer, p_command_id uuid, p_attached text)
  returns text
  language sql stable
as $$
  select pawl.process_attached_difference(p_domain, p_domain_id, p_command_id, p_attached)
$$;

-- The status of a command as its module calls it; null: it has no module.
create or replace function pawl.attached_status (p_id bigint)
  returns text
  language sql stable
as $$
  select pawl.process_status(p_id)
$$;

-- Is something due by what is attached?
create or replace function pawl.attached_is_due (p_now timestamptz)
  returns boolean
  language plpgsql stable security definer set search_path = pawl, pg_temp
  set plan = keyed_cached
as $$
begin
  return pawl.process_deadline_next('-infinity', p_now) is not null;
end
$$;

-- Do what is due by what is attached, at most p_limit of it. Locks are waited for, but for about a second in all: others wait for what the call
-- holds. Returns when something is due next, in milliseconds, at most p_most_ms; 0: there is more to do.
create or replace function pawl.attached_due (p_limit integer, p_most_ms integer)
  returns integer
  language plpgsql security definer set search_path = pawl, pg_temp
  set plan = keyed_cached
as $$
declare
  v_now timestamptz := pawl.now();
begin
  if (p_limit between 1 and 100000 and p_most_ms between 0 and 86400000) is not true then
    raise exception 'limit must be from 1 to 100000 and most_ms from 0 to 86400000' using errcode = 'QU001';
  end if;
  if not pawl.process_deadlines_pass(p_limit, v_now) then
    return 0;
  end if;
  return coalesce(ceil(extract(epoch from
    pawl.attached_due_next(v_now, v_now + p_most_ms * interval '1 ms') - v_now) * 1000)::integer, p_most_ms);
end
$$;

-- When something is due next, between these times; null: nothing is.
create or replace function pawl.attached_due_next (p_from timestamptz, p_to timestamptz)
  returns timestamptz
  language plpgsql stable
as $$
begin
  return pawl.process_deadline_next(p_from, p_to);
end
$$;

-- Lock what is attached to these commands, by id, before the rows of the bus: nothing of it changes until the commit. Returns the commands whose rows
-- another transaction has locked. Among several they are not waited for, because the others are held meanwhile; one alone is waited for, as
-- lock_timeout says.
create or replace function pawl.attached_lock (p_ids bigint[])
  returns bigint[]
  language sql
as $$
  select pawl.process_lock(p_ids)
$$;

-- Why a command must not be canceled, as the verdict of pawl.command_cancel; null: it may be.
create or replace function pawl.attached_cancel_verdict (p_id bigint)
  returns text
  language sql stable
as $$
  select pawl.process_cancel_verdict(p_id)
$$;

-- The status of a command as its module names it.
create or replace function pawl.attached_status (p_id bigint)
  returns text
  language sql stable
as $$
  select coalesce(pawl.process_status(p_id), pawl.command_status(p_id))
$$;

-- An operator has these commands tried again. What is attached to them is locked.
create or replace function pawl.attached_retried (p_ids bigint[])
  returns void
  language sql
as $$
  select pawl.process_retried(p_ids)
$$;

-- An operator has ended these commands: p_event of the audit says how.
create or replace function pawl.attached_ended (p_ids bigint[], p_event text)
  returns void
  language sql
as $$
  select pawl.process_attached_ended(p_ids, p_event)
$$;

-- Those of these ended commands that retention may delete now; what is attached to them is locked.
create or replace function pawl.attached_prunable (p_ids bigint[])
  returns bigint[]
  language sql
as $$
  select pawl.process_prunable(p_ids)
$$;

-- Delete at most p_limit keys that modules keep, as old as those of pawl.prune_keys. Returns how many.
create or replace function pawl.attached_keys_prune (p_limit integer, p_before timestamptz)
  returns bigint
  language sql
as $$
  select pawl.kept_responses_prune(p_limit, p_before)
$$;

-- These commands were deleted.
create or replace function pawl.attached_pruned (p_ids bigint[])
  returns void
  language sql
as $$
  select pawl.process_pruned(p_ids)
$$;
