-- dead_letter.sql - operations that have failed, retried until they succeed or three tries are used up.
--
--     pending  -> retrying [dead_letter_claim]            retrying -> resolved [dead_letter_settle: it worked]
--     retrying -> retrying [dead_letter_claim: its lease ran out, tries left]
--     retrying -> pending  [dead_letter_settle: it failed, tries left; or it is endless]
--     retrying -> failed   [dead_letter_settle: it failed, none left; dead_letter_claim: its lease ran out, none left;
--                           not where dead_letter_is_endless]
--     pending, failed -> pending [dead_letter_retry: by hand, tries start again]
--
-- Invariants
--   1. At most one unresolved row per (operation_type, operation_key).
--   2. A lease number only grows; hold and settle name it, so a report that comes late changes nothing.
--   3. retry_count counts tries begun: a letter that kills its pod runs out of tries too, unless it is endless. A claim begins the
--      try, so claim no more than are tried at the same time.
-- Lock order: rows by id; put inserts by (type, key); claim skips what is locked and never waits.
-- Errors: PW003 arrays differ in length, or a number is out of range.
-- The functions run with the owner's rights: roles may call them, not touch the table.

-- Types whose letters pawl makes and tries again itself. An application that could put one would act with the rights of the function
-- that tries it, or keep the true letter out, because a key is kept once.
create or replace function pawl.dead_letter_reserved ()
  returns text[]
  language sql immutable
as $$
  select array['reply', 'on_complete', 'alert_webhook', 'match_registration', 'match_undo']
$$;

-- The data of a letter as text, for roles that may read payloads; NULL: there is no such letter.
create or replace function pawl.dead_letter_data (p_id bigint)
  returns jsonb
  language sql stable security definer set search_path = pawl, pg_temp
as $$
  select pawl.json_shown(f.operation_data) from pawl.failed_operations f where f.id = p_id
$$;

-- The same for every reader: NULL for a role that may not call dead_letter_data, which is checked here because a query with a call of that
-- function would be refused as a whole.
create or replace function pawl.dead_letter_shown (p_id bigint)
  returns jsonb
  language plpgsql stable set search_path = pawl, pg_temp
as $$
begin
  if has_function_privilege('pawl.dead_letter_data(bigint)', 'execute') then
    return pawl.dead_letter_data(p_id);
  end if;
  return null;
end
$$;

-- Keep operations of an application that failed; one row out per item, in any order. An unresolved letter with the same type and key is left as it is, and its id
-- returned. Types that are reserved are refused, and so are data of more than 16 MiB as text. Messages are cut after 8192 characters.
create or replace function pawl.dead_letter_put (
  p_types text[], p_keys text[], p_data jsonb[], p_messages text[], p_codes text[],
  p_delay_ms integer default 300000)
  returns table (item integer, id bigint, is_new boolean)
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
#variable_conflict use_column
begin
  if p_types && pawl.dead_letter_reserved() then
    raise exception 'type must not be one of %, which are reserved', array_to_string(pawl.dead_letter_reserved(), ', ')
      using errcode = 'PW003';
  end if;
  perform pawl.json_check('data', p_data, 'PW003');
  return query select k.item, k.id, k.is_new from pawl.dead_letter_keep(p_types, p_keys, p_data, p_messages, p_codes, p_delay_ms) k;
end
$$;

-- The same for monitors, which keep letters of reserved types too, but for those whose data say what is sent with the rights of pawl.
create or replace function pawl.dead_letter_put_own (
  p_types text[], p_keys text[], p_data jsonb[], p_messages text[], p_codes text[], p_delay_ms integer)
  returns table (item integer, id bigint, is_new boolean)
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
#variable_conflict use_column
begin
  if p_types && array['reply', 'on_complete'] then
    raise exception 'type must not be reply or on_complete, whose letters only settles keep' using errcode = 'PW003';
  end if;
  return query select k.item, k.id, k.is_new from pawl.dead_letter_keep(p_types, p_keys, p_data, p_messages, p_codes, p_delay_ms) k;
end
$$;

-- The data of an unresolved letter. Functions that try a letter again read it here: a caller names a letter and cannot bring one.
create or replace function pawl.dead_letter_read (p_type text, p_key text)
  returns jsonb
  language plpgsql stable security definer set search_path = pawl, pg_temp
as $$
declare
  v_data jsonb;
begin
  select f.operation_data into v_data
  from pawl.failed_operations f
  where f.operation_type = p_type and f.operation_key = p_key and f.status <> 'resolved';
  if not found then
    raise exception 'dead letter of type "%" with key "%" not found, or resolved', p_type, coalesce(left(p_key, 200), 'null') using errcode = 'QU004';
  end if;
  return v_data;
end
$$;

-- The same for any type: for functions of pawl only.
create or replace function pawl.dead_letter_keep (
  p_types text[], p_keys text[], p_data jsonb[], p_messages text[], p_codes text[], p_delay_ms integer)
  returns table (item integer, id bigint, is_new boolean)
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
#variable_conflict use_column
declare
  v_now  timestamptz := pawl.now();
  v_count integer := cardinality(p_types);
  v_item record;
begin
  perform pawl.array_check('types', p_types, v_count, 'PW003'), pawl.array_check('keys', p_keys, v_count, 'PW003'),
          pawl.array_check('data', p_data, v_count, 'PW003'), pawl.array_check('messages', p_messages, v_count, 'PW003'),
          pawl.array_check('codes', p_codes, v_count, 'PW003');
  if (p_delay_ms >= 0) is not true then
    raise exception 'delay_ms must be 0 or more, got %', coalesce(p_delay_ms::text, 'null') using errcode = 'PW003';
  end if;
  if exists (
    select from unnest(p_types, p_keys, p_data, p_messages, p_codes) u (type, key, data, message, code)
    where (char_length(u.type) between 1 and 50 and char_length(u.key) between 1 and 200 and u.data is not null
           and u.message is not null and char_length(u.code) <= 50) is not true) then
    raise exception 'type must have 1 to 50 characters, key 1 to 200, code at most 50; data and message must not be null'
      using errcode = 'PW003';
  end if;

  -- Two calls with the same keys must meet them in the same order.
  for v_item in
    select u.*
    from unnest(p_types, p_keys, p_data, p_messages, p_codes) with ordinality as u (type, key, data, message, code, number)
    order by u.type, u.key, u.number
  loop
    item := v_item.number;
    loop
      insert into pawl.failed_operations
        (operation_type, operation_key, operation_data, error_message, error_code, created_at, next_retry_at)
      values (v_item.type, v_item.key, v_item.data, left(v_item.message, 8192), v_item.code, v_now,
              v_now + p_delay_ms * interval '1 ms')
      on conflict (operation_type, operation_key) where status <> 'resolved' do nothing
      returning failed_operations.id into id;
      is_new := found;
      exit when found;

      select f.id into id
      from pawl.failed_operations f
      where f.operation_type = v_item.type and f.operation_key = v_item.key and f.status <> 'resolved';
      if found then
        perform pawl.replay_barrier();
        exit;
      end if; -- else it was resolved in between: insert again
    end loop;
    return next;
  end loop;
end
$$;

-- Has this letter no last try? A reply to a process: the process waits for nothing else, and what keeps the reply out passes (a lock, a
-- full disk, pods that die). A queue may be broken for good, and a command's id taken for good.
create or replace function pawl.dead_letter_is_endless (p_type text, p_data jsonb)
  returns boolean
  language plpgsql immutable
as $$
begin
  return p_type = 'reply' and not pawl.reply_is_queue(p_data ->> 'queue') and p_data ->> 'queue' not like 'command:%';
end
$$;

-- Lease up to p_limit letters of the given types: due ones, and those whose pod died.
create or replace function pawl.dead_letter_claim (
  p_types text[], p_limit integer default 1, p_lease_ms integer default 60000, p_tries_max integer default 3)
  returns table (id bigint, operation_type text, operation_key text, operation_data jsonb, lease bigint)
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
#variable_conflict use_column
declare
  v_now timestamptz := pawl.now();
  v_ids bigint[];
begin
  if (p_limit between 1 and 1000 and p_lease_ms >= 1 and p_tries_max >= 1) is not true then
    raise exception 'limit, lease or tries out of range' using errcode = 'PW003';
  end if;

  -- The clock was ahead when these were leased: they get their time from now on.
  update pawl.failed_operations f set lease_until = v_now + (f.lease_until - f.last_retry_at), last_retry_at = v_now
  where f.id = any (array(
    select e.id from pawl.failed_operations e
    where e.status = 'retrying' and e.lease_until > v_now and e.last_retry_at > v_now + interval '1 min'
    order by e.lease_until desc limit p_limit for update skip locked));

  -- Letters lost in their last try must not use up the limit.
  update pawl.failed_operations f
  set status = 'failed', lease_until = null, error_message = 'the pod that tried it did not report back',
      error_code = 'lease-expired'
  where f.id = any (array(
    select e.id
    from pawl.failed_operations e
    where e.status = 'retrying' and e.lease_until <= v_now and e.operation_type = any (p_types)
      and e.retry_count >= p_tries_max and not pawl.dead_letter_is_endless(e.operation_type, e.operation_data)
    order by e.lease_until
    limit p_limit
    for update skip locked
  ));

  v_ids := array(
    select f.id
    from pawl.failed_operations f
    where f.status = 'retrying' and f.lease_until <= v_now and f.operation_type = any (p_types)
      and (f.retry_count < p_tries_max or pawl.dead_letter_is_endless(f.operation_type, f.operation_data))
    order by f.lease_until
    limit p_limit
    for update skip locked
  );
  v_ids := v_ids || array(
    select due.id
    from unnest(p_types) as type
    cross join lateral (
      select f.id
      from pawl.failed_operations f
      where f.status = 'pending' and f.operation_type = type and f.next_retry_at <= v_now
      order by f.next_retry_at, f.id
      limit p_limit
      for update skip locked
    ) as due
    limit p_limit - cardinality(v_ids)
  );
  return query
    update pawl.failed_operations f
    set status = 'retrying', retry_count = f.retry_count + 1, last_retry_at = v_now, lease = f.lease + 1,
        lease_until = v_now + p_lease_ms * interval '1 ms'
    where f.id = any (v_ids)
    returning f.id, f.operation_type, f.operation_key, f.operation_data, f.lease;
end
$$;

-- Lock a claimed letter for the transaction that tries it, so that no other pod claims it meanwhile. Says 'retrying': go on;
-- 'resolved': an earlier run of the same try committed; null: the lease is lost or the letter was deleted.
create or replace function pawl.dead_letter_hold (p_id bigint, p_lease bigint)
  returns text
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
declare
  v_status text;
begin
  select f.status into v_status
  from pawl.failed_operations f
  where f.id = p_id and f.lease = p_lease and f.status in ('retrying', 'resolved')
  for update;
  return v_status;
end
$$;

-- Report how tries ended. settled is false, and nothing changed, where the lease is not the letter's last one. An endless one is tried
-- again after a quarter of its age, from 1 s to p_delay_ms. If it only found its target locked, that does not count as a try, and it is tried
-- again after 10 s at most: an application may hold a process for as long as its transaction (pawl.signal).
create or replace function pawl.dead_letter_settle (
  p_ids bigint[], p_leases bigint[], p_worked boolean[], p_messages text[], p_codes text[],
  p_tries_max integer default 3, p_delay_ms integer default 300000)
  returns table (id bigint, settled boolean, status text)
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
#variable_conflict use_column
declare
  v_now timestamptz := pawl.now();
begin
  if (cardinality(p_ids) = all (array[cardinality(p_leases), cardinality(p_worked), cardinality(p_messages),
                                      cardinality(p_codes)]) and p_tries_max >= 1 and p_delay_ms >= 0) is not true then
    raise exception 'arrays differ in length, or a number is out of range' using errcode = 'PW003';
  end if;

  perform from pawl.failed_operations f where f.id = any (p_ids) order by f.id for update;
  return query
    with item as (
      select *
      from unnest(p_ids, p_leases, p_worked, p_messages, p_codes) as u (id, lease, worked, message, code)
    ), moved as (
      update pawl.failed_operations f
      set status = case when i.worked then 'resolved' when f.retry_count >= p_tries_max and not e.is_endless then 'failed' else 'pending' end,
          retry_count = f.retry_count - (e.is_endless and e.is_held)::integer,
          error_message = coalesce(left(i.message, 8192), f.error_message),
          error_code = coalesce(i.code, f.error_code),
          lease_until = null,
          next_retry_at = v_now + case when e.is_endless
            then greatest(interval '1 s', least(case when e.is_held then 10000 else p_delay_ms end * interval '1 ms', (v_now - f.created_at) / 4))
            else p_delay_ms * interval '1 ms' end
      from item i
      cross join lateral (
        select pawl.dead_letter_is_endless(t.operation_type, t.operation_data) as is_endless,
               not i.worked and i.code is not distinct from '55P03' as is_held
        from pawl.failed_operations t where t.id = i.id) e
      where f.id = any (p_ids) and f.id = i.id and f.lease = i.lease and f.status = 'retrying'
      returning f.id, f.lease, f.status
    )
    select i.id, m.id is not null, coalesce(m.status, f.status)
    from item i
    left join moved m on m.id = i.id and m.lease = i.lease
    left join pawl.failed_operations f on f.id = i.id;
end
$$;

-- By an operator: due immediately, tries are reset. moved is false for one that is resolved or being tried; status is null for
-- one that is not there.
create or replace function pawl.dead_letter_retry (p_ids bigint[])
  returns table (id bigint, moved boolean, status text)
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
#variable_conflict use_column
declare
  v_now timestamptz := pawl.now();
begin
  perform from pawl.failed_operations f where f.id = any (p_ids) order by f.id for update;
  return query
    with moved as (
      update pawl.failed_operations f
      set status = 'pending', retry_count = 0, next_retry_at = v_now
      where f.id = any (p_ids) and f.status in ('pending', 'failed')
      returning f.id
    )
    select i.id, m.id is not null, case when m.id is not null then 'pending' else f.status end
    from unnest(p_ids) as i (id)
    left join moved m on m.id = i.id
    left join pawl.failed_operations f on f.id = i.id;
end
$$;

-- By an operator: delete letters in any state; a try in progress finds its lease lost and rolls back.
create or replace function pawl.dead_letter_delete (p_ids bigint[])
  returns setof bigint
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
begin
  perform from pawl.failed_operations f where f.id = any (p_ids) order by f.id for update;
  return query delete from pawl.failed_operations f where f.id = any (p_ids) returning f.id;
end
$$;
