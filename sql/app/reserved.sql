-- reserved.sql - what modules reserve of the bus: domains whose commands are not an application's own, and targets of replies that only
-- a module uses. Each module has its own in <module>/reserved.sql; the bus asks here. bus/reserved_domain.h is the same for C.

-- pattern: a regular expression. refuses_replies: no reply becomes a command of the domain, because that needs other rights than sending
-- one. sender: only a session that may call this function sends there; null: every sender does.
create or replace function pawl.reserved_domains ()
  returns table (pattern text, commands text, refuses_replies boolean, sender text)
  language sql immutable
as $$
  select * from pawl.process_domains()
  union all
  select * from pawl.telegram_domains()
$$;

-- May the caller name the target?
create or replace function pawl.reserved_target_is_open (p_target text)
  returns boolean
  language sql stable
as $$
  select pawl.process_target_is_open(p_target)
$$;

-- Deliver replies to a target of a module. false: it is none.
create or replace function pawl.reserved_target_deliver (p_target text, p_replies jsonb[])
  returns boolean
  language sql
as $$
  select pawl.process_target_deliver(p_target, p_replies)
$$;

-- The number of the command that gets the replies to a target of a module; null: there is none.
create or replace function pawl.reserved_target_id (p_target text)
  returns bigint
  language sql immutable
as $$
  select pawl.process_target_id(p_target)
$$;

-- What of that command gets them, for people.
create or replace function pawl.reserved_target_step (p_target text)
  returns text
  language sql stable
as $$
  select pawl.process_target_step(p_target)
$$;

-- The status of a command that has ended, as its reply has it.
create or replace function pawl.reply_status (p_id bigint, p_status text)
  returns text
  language sql stable
as $$
  select pawl.process_reply_status(p_id, p_status)
$$;
