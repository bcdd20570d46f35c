-- dead_letter_route.sql - dead letters that applications put: a type names a domain and a type of the bus to be sent to.
--
-- Invariants
--   1. A letter becomes one command: sending and resolving are one transaction, under the letter's lock. The command's id is random: a
--      sender that could foresee it could send another command under it and so keep the letter from being sent.
--   2. A letter that cannot be sent fails alone, and its tries count as those of any other. A failure of the server or of another
--      transaction (pawl.is_transient, a lock timeout) is no try.
-- Lock order: letters by id, skipping what is locked; then those of pawl.send, each with a bound.
-- Errors: PW003 a number is out of range or a name is missing.

-- Letters of this type go to the bus from now on; p_domain null: no longer.
create or replace function pawl.dead_letter_route (p_type text, p_domain text, p_command_type text)
  returns void
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
begin
  if (char_length(p_type) between 1 and 50) is not true or (p_domain is null) <> (p_command_type is null) then
    raise exception 'type must have 1 to 50 characters, and domain and command_type must be given both or neither' using errcode = 'PW003';
  end if;
  if p_domain is not null then
    perform pawl.name_check('domain', p_domain, 63, 'PW003'), pawl.name_check('command_type', p_command_type, 100, 'PW003');
    perform pawl.send_right_check('domain', p_domain);
  end if;
  if p_type = any (pawl.dead_letter_reserved()) then
    raise exception 'type "%" is reserved: pawl tries its letters again itself', p_type using errcode = 'PW003';
  end if;
  if p_domain is null then
    delete from pawl.dead_letter_route r where r.operation_type = p_type;
  else
    insert into pawl.dead_letter_route as r (operation_type, domain, command_type) values (p_type, p_domain, p_command_type)
    on conflict (operation_type) do update set domain = excluded.domain, command_type = excluded.command_type;
  end if;
end
$$;

-- Who tries letters of a type again: "pawl" itself, or "DOMAIN/TYPE" of the bus by a route. NULL: nothing does, unless an application
-- claims them.
create or replace function pawl.dead_letter_retried_by (p_type text)
  returns text
  language sql stable security definer set search_path = pawl, pg_temp
as $$
  select case when p_type = any (pawl.dead_letter_reserved()) then 'pawl'
              else (select r.domain || '/' || r.command_type from pawl.dead_letter_route r where r.operation_type = p_type) end
$$;

-- Send up to p_limit letters that are due. Returns how many were sent.
create or replace function pawl.dead_letter_forward (p_limit integer, p_tries_max integer, p_delay_ms integer)
  returns integer
  language plpgsql security definer set search_path = pawl, pg_temp
  set lock_timeout = '2s'
as $$
declare
  v_now    timestamptz := pawl.now();
  v_letter record;
  v_sent   integer := 0;
  v_waits  integer := 0;
begin
  if (p_limit between 1 and 1000 and p_tries_max >= 1 and p_delay_ms >= 0) is not true then
    raise exception 'limit must be from 1 to 1000, tries at least 1 and delay not negative' using errcode = 'PW003';
  end if;
  for v_letter in
    select f.id, f.operation_data, r.domain, r.command_type
    from pawl.dead_letter_route r
    cross join lateral (
      select f.id, f.operation_data
      from pawl.failed_operations f
      where f.status = 'pending' and f.operation_type = r.operation_type and f.next_retry_at <= v_now
      order by f.next_retry_at, f.id
      limit p_limit
      for update skip locked
    ) f
    limit p_limit
  loop
    begin
      perform pawl.send(v_letter.domain, v_letter.command_type, v_letter.operation_data); -- its id is random
      update pawl.failed_operations f
      set status = 'resolved', retry_count = f.retry_count + 1, last_retry_at = v_now
      where f.id = v_letter.id;
      v_sent := v_sent + 1;
    exception when others then
      if pawl.is_transient(sqlstate) then
        raise; -- nothing counts: the whole round is run again later
      end if;
      if sqlstate = '55P03' then -- another transaction holds what the send needs: no try of the letter
        update pawl.failed_operations f set next_retry_at = v_now + p_delay_ms * interval '1 ms' where f.id = v_letter.id;
        v_waits := v_waits + 1;
        exit when v_waits >= 3;
        continue;
      end if;
      update pawl.failed_operations f
      set status = case when f.retry_count + 1 >= p_tries_max then 'failed' else 'pending' end,
          retry_count = f.retry_count + 1, last_retry_at = v_now, next_retry_at = v_now + p_delay_ms * interval '1 ms',
          error_message = sqlerrm, error_code = sqlstate
      where f.id = v_letter.id;
    end;
  end loop;
  return v_sent;
end
$$;
