-- letter.sql - dead letters of a bot: matches and undos whose update the database failed for. The update itself stays queued, in its
-- place in its chat: the letter shows operators that it waits, and for what reason.
--
--     pending  -> resolved [bot_letter_end: in the transaction that did it]
--     pending  -> failed   [bot_letter_end: given up, and its user was notified; or the task of dead letters: still not done
--                           after its tries]
--     failed   -> resolved [as pending; or an operator's retry, when its update has ended]
--
-- Lock order: none before the letter's row, of which each function has one.
-- Errors: TG001 an argument is missing or out of range; PW003 of pawl.dead_letter_keep.

create or replace function pawl.bot_letter_types ()
  returns text[]
  language sql immutable
as $$
  select array['match_registration', 'match_undo']
$$;

create or replace function pawl.bot_letter_key (p_bot_id bigint, p_update_id bigint)
  returns text
  language sql immutable
as $$
  select p_bot_id || ':' || p_update_id
$$;

-- Has the update's command ended? One that is not there any more has.
create or replace function pawl.bot_letter_done (p_bot_id bigint, p_command_id uuid)
  returns boolean
  language plpgsql stable security definer set search_path = pawl, pg_temp
as $$
begin
  if (p_bot_id > 0 and p_command_id is not null) is not true then
    raise exception 'bot_id must be from 1, and command_id given' using errcode = 'TG001';
  end if;
  return not exists (
    select from pawl.command c
    where c.command_id = p_command_id and c.domain_id = pawl.domain_find('telegram:' || p_bot_id)
      and not exists (select from pawl.outcome o where o.id = c.id));
end
$$;

-- Keep a letter, once while it is not resolved. false: the update has ended meanwhile, in another process: the letter is resolved.
create or replace function pawl.bot_letter_keep (
  p_bot_id bigint, p_update_id bigint, p_command_id uuid, p_type text, p_data jsonb, p_message text, p_code text)
  returns boolean
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
begin
  if (p_bot_id > 0 and p_update_id > 0 and p_type = any (pawl.bot_letter_types())) is not true then
    raise exception 'bot_id and update_id must be from 1, and type one of %', array_to_string(pawl.bot_letter_types(), ', ')
      using errcode = 'TG001';
  end if;
  perform from pawl.dead_letter_keep(array[p_type], array[pawl.bot_letter_key(p_bot_id, p_update_id)], array[p_data],
    array[p_message], array[p_code], 300000);
  if pawl.bot_letter_done(p_bot_id, p_command_id) then
    perform pawl.bot_letter_end(p_bot_id, p_update_id, null);
    return false;
  end if;
  return true;
end
$$;

-- The update was done, or, with a message, given up. Without a letter: nothing.
create or replace function pawl.bot_letter_end (p_bot_id bigint, p_update_id bigint, p_message text)
  returns void
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
begin
  if (p_bot_id > 0 and p_update_id > 0) is not true then
    raise exception 'bot_id and update_id must be from 1' using errcode = 'TG001';
  end if;
  update pawl.failed_operations f
  set status = case when p_message is null then 'resolved' else 'failed' end, lease_until = null,
      error_message = coalesce(left(p_message, 8192), f.error_message), retry_count = f.retry_count + 1, last_retry_at = pawl.now()
  where f.operation_type = any (pawl.bot_letter_types())
    and f.operation_key = pawl.bot_letter_key(p_bot_id, p_update_id) and f.status <> 'resolved';
end
$$;
