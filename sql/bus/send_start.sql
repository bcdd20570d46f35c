-- send_start.sql - start what a program sends on its own free handlers: the send leases the command, and no claim follows.
--
-- The caller names a token for each item for which it has reserved a handler, and the worker that has it. The database decides which of them start: those
-- that a claim of this worker would find first. The others are queued, as ever.
-- A token belongs to one send and stays the same in all its tries, so a try that finds what an earlier one has committed learns whether that leased
-- the command.
-- Locks: as a claim, the rows of free order keys (order.sql), for 10 ms each at most.
-- Errors: QU001 arguments out of range. 42501 the login may not work.

-- The highest priority, from p_least up, of which a command is ready that this worker may claim; null: none is. What a transaction that has not ended
-- sends is not seen: it is sent at the same time. p_after: of each priority, the position behind which the worker's claims begin, so that dead index
-- entries before it are not read. Of a worker of some types at most c_read commands of a priority are read: further ones count as its own.
create or replace function pawl.send_waiting (p_domain_id integer, p_least integer, p_types text[], p_after bigint[])
  returns smallint
  language plpgsql stable
as $$
declare
  c_read constant integer := 32;
begin
  if p_types is null then
    return (
      select p.priority
      from generate_series(9, p_least, -1) p (priority)
      cross join lateral (
        select from pawl.ready r
        where r.domain_id = p_domain_id and r.priority = p.priority and r.pos > p_after[p.priority + 1]
        order by r.pos limit 1) r
      limit 1);
  end if;
  return (
    select p.priority
    from generate_series(9, p_least, -1) p (priority)
    cross join lateral (
      select from (
        select r.id, row_number() over (order by r.pos) as n
        from pawl.ready r
        where r.domain_id = p_domain_id and r.priority = p.priority and r.pos > p_after[p.priority + 1]
        order by r.pos limit c_read) r
      where r.n = c_read or exists (select from pawl.command c where c.id = r.id and c.type = any (p_types))
      limit 1) r
    limit 1);
end
$$;

-- The tokens of those items that may start, because no command that is ready goes before them; null: none may.
create or replace function pawl.send_offer (
  p_domain_id integer, p_count integer, p_priorities smallint[], p_tokens bigint[], p_worker text, p_lease_ms integer, p_worker_types text[],
  p_after bigint[])
  returns bigint[]
  language plpgsql
as $$
declare
  v_waiting smallint;
begin
  perform pawl.array_check('tokens', p_tokens, p_count, 'QU001'), pawl.array_check('after', p_after, 10, 'QU001'),
          pawl.array_check('worker_types', p_worker_types, coalesce(cardinality(p_worker_types), 0), 'QU001', true),
          pawl.actor_check('worker', p_worker);
  if (p_lease_ms between 100 and 86400000 and p_worker is not null and array_position(p_after, null) is null) is not true then
    raise exception 'worker and after must not be null, and lease_ms from 100 to 86400000' using errcode = 'QU001';
  end if;
  -- By its login, because this function may run as its owner.
  if not has_function_privilege(session_user, 'pawl.claim'::regproc, 'execute') then
    raise exception 'the login may not work, so it has no handlers to offer' using errcode = '42501';
  end if;
  if pawl.allocated() < any (p_after) -- from before a restore: what is ready may be anywhere
     or exists (select from pawl.gate g where g.domain_id = p_domain_id) then -- paused or limited: a claim decides
    return null;
  end if;
  v_waiting := pawl.send_waiting(
    p_domain_id, (select min(coalesce(u.priority, 4)) from unnest(p_tokens, p_priorities) u (token, priority) where u.token is not null),
    p_worker_types, p_after);
  if v_waiting is null then
    return p_tokens;
  end if;
  return (
    select array_agg(case when coalesce(u.priority, 4) > v_waiting then u.token end order by u.n)
    from unnest(p_tokens, p_priorities) with ordinality u (token, priority, n)
    having bool_or(u.token is not null and coalesce(u.priority, 4) > v_waiting));
end
$$;

-- Give free order keys to those of these new commands that are the first of their keys. Returns these. p_numbers, p_keys: of all items of the send.
create or replace function pawl.send_start_keys (p_domain_id integer, p_ids bigint[], p_numbers bigint[], p_keys text[])
  returns bigint[]
  language plpgsql
as $$
declare
  v_keys text[];
  v_ids bigint[];
begin
  select array_agg(k.key), array_agg(k.id) into v_keys, v_ids
  from (select u.key, min(u.id) as id from unnest(p_numbers, p_keys) u (id, key) where u.key is not null group by u.key) k
  where k.id = any (p_ids)
    and not exists (select from pawl.order_turn t where t.domain_id = p_domain_id and t.order_key = k.key)
    and not exists (select from pawl.ready r where r.domain_id = p_domain_id and r.order_key = k.key and r.id < k.id);
  return case when v_keys is null then '{}' else pawl.order_open(p_domain_id, v_keys, v_ids) end;
end
$$;

-- Lease those of the items with tokens whose commands are new. The others, and those in their last attempt, which must not be lost before they begin,
-- are left to the queue. Returns what was leased; null: nothing.
create or replace function pawl.send_start (
  p_domain_id integer, p_now timestamptz, p_numbers bigint[], p_order_keys text[], p_tokens bigint[], p_worker text, p_lease_ms integer)
  returns bigint[]
  language plpgsql
as $$
declare
  v_ids bigint[];
  v_keyed bigint[];
  v_opened bigint[];
begin
  select array_agg(c.id), array_agg(c.id) filter (where c.order_key is not null) into v_ids, v_keyed
  from unnest(p_numbers, p_tokens) u (id, token)
  cross join lateral (select c.id, c.order_key, c.max_attempts from pawl.command c where c.id = u.id limit 1) c
  where u.token is not null and c.max_attempts > 1;
  if v_keyed is not null then
    v_opened := pawl.send_start_keys(p_domain_id, v_keyed, p_numbers, p_order_keys);
    v_ids := nullif(array(select i from unnest(v_ids) i where i <> all (v_keyed) or i = any (v_opened)), '{}');
  end if;
  if v_ids is not null then
    insert into pawl.lease (id, token, until, domain_id, priority, attempt, max_attempts, extras, started_at, worker, lease_ms)
    select c.id, u.token, p_now + p_lease_ms * interval '1 ms', p_domain_id, c.priority, 1, c.max_attempts,
           c.reply_to is not null or c.batch_id is not null or c.order_key is not null or c.payload_bytes is not null, p_now, p_worker, p_lease_ms
    from unnest(p_numbers, p_tokens) u (id, token)
    cross join lateral (select c.* from pawl.command c where c.id = u.id limit 1) c
    where u.id = any (v_ids);
  end if;
  return v_ids;
end
$$;

-- The command of a send, if it has the lease with this token.
create or replace function pawl.send_started (p_domain_id integer, p_command_id uuid, p_token bigint)
  returns table (number bigint, payload jsonb)
  language sql stable
as $$
  select c.id, c.payload
  from pawl.command c
  cross join lateral (select from pawl.lease l where l.id = c.id and l.token = p_token limit 1) l
  where c.command_id = p_command_id and c.domain_id = p_domain_id and p_token is not null
  limit 1
$$;
