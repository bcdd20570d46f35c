-- send_put.sql - the rows of commands that are sent.
-- Locks: the unique key of each command id, in the order of the ids. A concurrent send of the same id, by another transaction that has not ended,
-- holds it. Ids that no other transaction has are inserted unsorted. The queue has the order of the call in any case: its numbers are allocated first.
-- Errors: 23505 an id that should be new is not.

-- The rows of commands that are new, of items without delays. Returns their numbers. Two inserts from the arguments take less
-- time than the statement of pawl.send_put, which carries the rows of one insert to the next. Arrays are read by unnest in a select list,
-- all of them in step, and null ones as nulls: in FROM their rows would be copied first, and subscripts take longer.
-- p_fresh: no other command has these ids, or there is an error (23505). p_tokens, p_worker, p_lease_ms: as pawl.send_start takes them.
create or replace function pawl.send_put_ready (
  p_domain_id integer, p_batch bigint, p_now timestamptz, p_actor text, p_ids uuid[], p_types text[], p_payloads jsonb[],
  p_bytes integer[], p_priorities smallint[], p_max_attempts smallint[], p_reply_to text[], p_correlation_ids text[], p_order_keys text[],
  p_fresh boolean, p_tokens bigint[], p_worker text, p_lease_ms integer)
  returns bigint[]
  language plpgsql
as $$
declare
  v_count integer := cardinality(p_ids);
  v_new bigint;
  v_numbers bigint[] := array(select nextval('pawl.command_seq') from (select generate_series(1, v_count)) n);
  v_started bigint[];
  v_queued bigint[];
begin
  if p_fresh then -- the same, without looking each id up first
    insert into pawl.command (id, domain_id, command_id, type, payload, payload_bytes, priority, max_attempts, reply_to, correlation_id,
                              batch_id, created_at, sender, order_key)
    select i.id, p_domain_id, i.command_id, i.type, coalesce(i.payload, 'null'), i.bytes, coalesce(i.priority, 4),
           coalesce(i.max_attempts, 3), i.reply_to, i.correlation_id, p_batch, p_now, p_actor, i.order_key
    from (select unnest(v_numbers) as id, unnest(p_ids) as command_id, unnest(p_types) as type, unnest(p_payloads) as payload,
                 unnest(p_bytes) as bytes, unnest(p_priorities) as priority, unnest(p_max_attempts) as max_attempts,
                 unnest(p_reply_to) as reply_to, unnest(p_correlation_ids) as correlation_id, unnest(p_order_keys) as order_key) i;
  else
    insert into pawl.command (id, domain_id, command_id, type, payload, payload_bytes, priority, max_attempts, reply_to, correlation_id,
                              batch_id, created_at, sender, order_key)
    select i.id, p_domain_id, i.command_id, i.type, coalesce(i.payload, 'null'), i.bytes, coalesce(i.priority, 4),
           coalesce(i.max_attempts, 3), i.reply_to, i.correlation_id, p_batch, p_now, p_actor, i.order_key
    from (select unnest(v_numbers) as id, unnest(p_ids) as command_id, unnest(p_types) as type, unnest(p_payloads) as payload,
                 unnest(p_bytes) as bytes, unnest(p_priorities) as priority, unnest(p_max_attempts) as max_attempts,
                 unnest(p_reply_to) as reply_to, unnest(p_correlation_ids) as correlation_id, unnest(p_order_keys) as order_key) i
    order by i.command_id, i.id -- so that two callers with the same ids cannot wait for each other
    on conflict on constraint command_key do nothing;
  end if;
  get diagnostics v_new = row_count;
  if p_tokens is not null then
    v_started := pawl.send_start(p_domain_id, p_now, v_numbers, p_order_keys, p_tokens, p_worker, p_lease_ms);
  end if;
  if v_new < v_count then
    v_numbers := array(select c.id from unnest(v_numbers) n (id) cross join lateral (select c.id from pawl.command c where c.id = n.id limit 1) c);
  end if;
  if v_new < v_count or v_started is not null then
    v_queued := case when v_started is null then v_numbers
                     else array(select n.id from unnest(v_numbers) n (id) where (n.id in (select unnest(v_started))) is not true) end;
    insert into pawl.ready (domain_id, priority, pos, id, attempt, max_attempts, extras, order_key)
    select p_domain_id, c.priority, c.id, c.id, 0, c.max_attempts,
           c.reply_to is not null or c.batch_id is not null or c.order_key is not null or c.payload_bytes is not null, c.order_key
    from unnest(v_queued) n (id)
    cross join lateral (select c.* from pawl.command c where c.id = n.id limit 1) c;
  else
    insert into pawl.ready (domain_id, priority, pos, id, attempt, max_attempts, extras, order_key)
    select p_domain_id, coalesce(i.priority, 4), i.id, i.id, 0, coalesce(i.max_attempts, 3),
           i.reply_to is not null or p_batch is not null or i.bytes is not null or i.order_key is not null, i.order_key
    from (select unnest(v_numbers) as id, unnest(p_bytes) as bytes, unnest(p_priorities) as priority, unnest(p_max_attempts) as max_attempts,
                 unnest(p_reply_to) as reply_to, unnest(p_order_keys) as order_key) i;
  end if;
  return v_numbers;
end
$$;

-- The rows of commands that are new, but for those whose ids are in p_aside. Returns their numbers. Of several items with one id the
-- first counts. With delays, or ids in p_aside, none of them starts.
create or replace function pawl.send_put (
  p_domain_id integer, p_batch bigint, p_now timestamptz, p_actor text, p_ids uuid[], p_types text[], p_payloads jsonb[],
  p_bytes integer[], p_delays_ms bigint[], p_priorities smallint[], p_max_attempts smallint[], p_reply_to text[],
  p_correlation_ids text[], p_order_keys text[], p_aside uuid[], p_fresh boolean, p_tokens bigint[], p_worker text, p_lease_ms integer)
  returns bigint[]
  language plpgsql
as $$
#variable_conflict use_column
declare
  v_made bigint[];
begin
  if p_delays_ms is null and p_aside is null then -- nearly always
    return pawl.send_put_ready(p_domain_id, p_batch, p_now, p_actor, p_ids, p_types, p_payloads, p_bytes, p_priorities, p_max_attempts,
                               p_reply_to, p_correlation_ids, p_order_keys, p_fresh, p_tokens, p_worker, p_lease_ms);
  end if;
  with item as materialized (
    select nextval('pawl.command_seq') as id, u.command_id, u.type, coalesce(u.payload, 'null') as payload, u.bytes,
           coalesce(u.priority, 4)::smallint as priority, coalesce(u.max_attempts, 3)::smallint as max_attempts,
           coalesce(u.delay_ms, 0) as delay_ms, u.reply_to, u.correlation_id, u.order_key
    from unnest(p_ids, p_types, p_payloads, p_bytes, p_priorities, p_max_attempts, p_delays_ms, p_reply_to, p_correlation_ids,
                p_order_keys)
      u (command_id, type, payload, bytes, priority, max_attempts, delay_ms, reply_to, correlation_id, order_key)
    where p_aside is null or u.command_id <> all (p_aside)
  ), made as (
    insert into pawl.command (id, domain_id, command_id, type, payload, payload_bytes, priority, max_attempts, reply_to,
                              correlation_id, batch_id, created_at, sender, order_key, due_at)
    select i.id, p_domain_id, i.command_id, i.type, i.payload, i.bytes, i.priority, i.max_attempts,
           i.reply_to, i.correlation_id, p_batch, p_now, p_actor, i.order_key,
           case when i.order_key is not null and i.delay_ms > 0 then p_now + i.delay_ms * interval '1 ms' end
    from item i
    order by i.command_id, i.id -- as above
    on conflict on constraint command_key do nothing
    returning id, priority, max_attempts, order_key,
              reply_to is not null or batch_id is not null or order_key is not null or payload_bytes is not null as extras
  ), waiting as (
    insert into pawl.delayed (id, due, domain_id, priority, attempt, max_attempts, extras)
    select i.id, p_now + i.delay_ms * interval '1 ms', p_domain_id, i.priority, 0, i.max_attempts,
           i.reply_to is not null or p_batch is not null or i.bytes is not null
    from item i
    where p_delays_ms is not null and i.delay_ms > 0 and i.order_key is null -- with a key it is delayed when its turn comes
      and (i.id in (select m.id from made m)) is true -- so written, it is hashed: a join may take the square of the items
    returning id
  ), queued as (
    insert into pawl.ready (domain_id, priority, pos, id, attempt, max_attempts, extras, order_key)
    select p_domain_id, m.priority, m.id, m.id, 0, m.max_attempts, m.extras, m.order_key
    from made m
    where p_delays_ms is null or not exists (select from waiting w where w.id = m.id)
  )
  select array_agg(m.id) into v_made from made m;
  return v_made;
end
$$;

-- The ids that a transaction which has not ended is sending too, or deletes (retention). An insert meets their rows, and waits. So each
-- is inserted, in a subtransaction that is rolled back in any case, under the session's lock_timeout, which the caller has made short.
-- After five waits the ids that were not tried are taken for busy as well: they make no other item wait, and are tried again alone.
create or replace function pawl.send_busy (p_domain_id integer, p_ids uuid[])
  returns uuid[]
  language plpgsql
as $$
declare
  c_rolled_back constant text := 'PWBSY';
  v_ids uuid[] := array(select distinct u.id from unnest(p_ids) u (id) order by u.id);
  v_busy uuid[] := '{}'::uuid[];
  v_at integer := 1; -- variables keep their values when a subtransaction is rolled back
begin
  loop
    begin
      while v_at <= cardinality(v_ids) loop
        insert into pawl.command (id, domain_id, command_id, type, payload, priority, max_attempts, created_at)
        values (nextval('pawl.command_seq'), p_domain_id, v_ids[v_at], 'busy', 'null', 0, 1, 'epoch')
        on conflict on constraint command_key do nothing;
        v_at := v_at + 1;
      end loop;
      raise exception using errcode = c_rolled_back;
    exception
      when lock_not_available then
        v_busy := v_busy || v_ids[v_at];
        v_at := v_at + 1;
        if cardinality(v_busy) >= 5 then
          return v_busy || v_ids[v_at:];
        end if;
      when sqlstate 'PWBSY' then
        return v_busy;
    end;
  end loop;
end
$$;

-- The same as send_put for ids that a caller has named, and that another transaction which has not ended may send too.
-- p_nowait: waits for that transaction 10 ms, and in the last try 100 ms; what it could not decide it leaves out. Else as long as the
-- session's lock_timeout.
-- p_fresh: first without looking each id up. If one is there, an earlier try of this call has committed, or has not ended.
create or replace function pawl.send_put_tried (
  p_nowait boolean, p_domain_id integer, p_batch bigint, p_now timestamptz, p_actor text, p_ids uuid[], p_types text[],
  p_payloads jsonb[], p_bytes integer[], p_delays_ms bigint[], p_priorities smallint[], p_max_attempts smallint[], p_reply_to text[],
  p_correlation_ids text[], p_order_keys text[], p_aside uuid[], p_fresh boolean, p_tokens bigint[], p_worker text, p_lease_ms integer)
  returns bigint[]
  language plpgsql
as $$
declare
  v_lock_timeout text := current_setting('lock_timeout');
  v_is_last boolean := false;
  v_made bigint[];
begin
  loop
    begin
      if p_nowait then
        perform set_config('lock_timeout', case when v_is_last then '100ms' else '10ms' end, true);
      end if;
      v_made := pawl.send_put(p_domain_id, p_batch, p_now, p_actor, p_ids, p_types, p_payloads, p_bytes, p_delays_ms, p_priorities,
                              p_max_attempts, p_reply_to, p_correlation_ids, p_order_keys, p_aside, p_fresh, p_tokens, p_worker, p_lease_ms);
      exit;
    exception when unique_violation or lock_not_available then
      if p_fresh then
        p_fresh := false;
      elsif p_nowait and not v_is_last and sqlstate = '55P03' then
        perform set_config('lock_timeout', '10ms', true);
        p_aside := p_aside || pawl.send_busy(p_domain_id, p_ids);
        v_is_last := true;
      else
        raise;
      end if;
    end;
  end loop;
  if p_nowait then
    perform set_config('lock_timeout', v_lock_timeout, true);
  end if;
  return v_made;
end
$$;

-- Of commands that were just written, those whose id was used by a command that retention has deleted: they are deleted again. Returns
-- the others. After the insert, because only then is it certain that a key that retention moves meanwhile is seen: the insert waits
-- for the deletion of the old row, and this statement has a later snapshot. (Under REPEATABLE READ it has not: a transaction that
-- began before retention moved the key may use the id once more.)
create or replace function pawl.send_unless_kept (p_domain_id integer, p_made bigint[])
  returns bigint[]
  language plpgsql
as $$
declare
  v_known bigint[];
begin
  if not exists (select from pawl.kept_key) then
    return p_made;
  end if;
  v_known := array(
    select c.id from unnest(p_made) m (id)
    cross join lateral (select c.id, c.command_id, c.priority from pawl.command c where c.id = m.id limit 1) c
    cross join lateral (
      select from pawl.kept_key k where k.command_id = c.command_id and k.domain_id = p_domain_id limit 1) k);
  if cardinality(v_known) = 0 then
    return p_made;
  end if;
  delete from pawl.ready r where (r.domain_id, r.priority, r.pos) in (
    select c.domain_id, c.priority, c.id from pawl.command c where c.id = any (v_known));
  delete from pawl.delayed d where d.id = any (v_known);
  delete from pawl.lease l where l.id = any (v_known);
  delete from pawl.order_turn t where (t.domain_id, t.order_key) in (
    select c.domain_id, c.order_key from pawl.command c where c.id = any (v_known)) and t.id = any (v_known);
  delete from pawl.command c where c.id = any (v_known);
  return array(select m from unnest(p_made) m except select k from unnest(v_known) k);
end
$$;
