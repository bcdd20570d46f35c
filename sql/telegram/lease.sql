-- lease.sql - the lease of the pod that polls for a bot.
--
-- Invariant: the lease has one holder until it ends. It saves conflicts at the server and is no lock: two processes that poll at the same time
-- store each update once, because its id is the command's.
-- Lock order: the bot's row alone; a row that another process has locked is not waited for.
-- Errors: TG001 an argument is missing or out of range.

-- Renew the lease if p_holder has it, take it if it has ended, or ends later than it can: the clock was ahead when it was taken. waiting: messages in the outbox, counted up to p_outbox_max, for the holder.
create or replace function pawl.telegram_lease (p_bot_id bigint, p_holder uuid, p_lease_ms integer, p_outbox_max integer)
  returns table (is_held boolean, username text, waiting integer)
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
#variable_conflict use_column
declare
  v_now timestamptz := pawl.now();
begin
  if (p_bot_id > 0 and p_holder is not null and p_lease_ms between 1 and 3600000 and p_outbox_max > 0) is not true then
    raise exception 'bot_id and outbox_max must be from 1, holder must be given and lease_ms must be from 1 to 3600000'
      using errcode = 'TG001';
  end if;
  insert into pawl.telegram_bot (bot_id, until)
  select p_bot_id, v_now where not exists (select from pawl.telegram_bot b where b.bot_id = p_bot_id)
  on conflict (bot_id) do nothing;
  update pawl.telegram_bot b set holder = p_holder, until = v_now + p_lease_ms * interval '1 ms'
  from (select l.bot_id from pawl.telegram_bot l
        where l.bot_id = p_bot_id
          and (l.holder = p_holder or l.until <= v_now or l.until > v_now + p_lease_ms * interval '1 ms' + interval '1 min')
        for update skip locked) l
  where b.bot_id = l.bot_id;
  is_held := found;
  username := (select b.username from pawl.telegram_bot b where b.bot_id = p_bot_id);
  waiting := case when is_held then pawl.telegram_waiting(p_bot_id, p_outbox_max) else 0 end;
  return next;
end
$$;

-- A process that stops, or steps back, lets another one take over without waiting for the end of its lease.
create or replace function pawl.telegram_lease_release (p_bot_id bigint, p_holder uuid)
  returns void
  language sql security definer set search_path = pawl, pg_temp
as $$
  update pawl.telegram_bot b set holder = null, until = pawl.now()
  where b.bot_id in (select l.bot_id from pawl.telegram_bot l where l.bot_id = p_bot_id and l.holder = p_holder for update skip locked)
$$;

create or replace function pawl.telegram_name (p_bot_id bigint, p_username text)
  returns void
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
begin
  if (char_length(p_username) between 1 and 100) is not true then
    raise exception 'username must have 1 to 100 characters' using errcode = 'TG001';
  end if;
  update pawl.telegram_bot b set username = p_username where b.bot_id = p_bot_id and b.username is distinct from p_username;
end
$$;
