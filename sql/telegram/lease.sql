-- lease.sql - the lease of the pod that polls for a bot: a task of pawl.task, "telegram:" and the bot's id.
--
-- Invariant: it saves conflicts at the server and is no lock: two processes that poll at the same time store each update
-- once, because its id is the command's.
-- Lock order: that of pawl.task_claim.
-- Errors: TG001 an argument is missing or out of range; PW003 holder or lease_ms is.

-- Renew the lease if p_holder has it, take it if it has ended. waiting: messages in the outbox, counted up to
-- p_outbox_max, for the holder.
create or replace function pawl.telegram_lease (p_bot_id bigint, p_holder uuid, p_lease_ms integer, p_outbox_max integer)
  returns table (is_held boolean, username text, waiting integer)
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
begin
  if (p_bot_id > 0 and p_outbox_max > 0) is not true then
    raise exception 'bot_id and outbox_max must be from 1' using errcode = 'TG001';
  end if;
  is_held := exists (select from pawl.task_claim(array['telegram:' || p_bot_id], p_holder, p_lease_ms));
  username := (select b.username from pawl.telegram_bot b where b.bot_id = p_bot_id);
  waiting := case when is_held then pawl.telegram_waiting(p_bot_id, p_outbox_max) else 0 end;
  return next;
end
$$;

create or replace function pawl.telegram_name (p_bot_id bigint, p_username text)
  returns void
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
begin
  if (p_bot_id > 0 and char_length(p_username) between 1 and 100) is not true then
    raise exception 'bot_id must be from 1, and username must have 1 to 100 characters' using errcode = 'TG001';
  end if;
  insert into pawl.telegram_bot as b (bot_id, username) values (p_bot_id, p_username)
  on conflict (bot_id) do update set username = excluded.username where b.username <> excluded.username;
end
$$;
