-- batch.sql - many commands, and one more when they have all ended.
--
-- Progress is computed from the rows; the only thing kept is a mark below which everything has ended, and that can only
-- move up, because nothing that ended begins again.
-- A batch is completed by the settle that ends its last command, under the batch row's lock. Settles share transactions with those of other domains, so
-- none waits for that lock for more than 10 ms: where another transaction has it, which may have looked before this one commits, the settle leaves a note
-- (pawl.batch_handover). A settle that ran while the batch was being sealed sees it open and takes no lock. pawl.batch_sweep, part of every requeue, completes
-- both kinds.
-- Lock order: batch rows by id, skipping locked ones, then one of these for 10 ms: the last locks of a transaction; then notes, skipping locked ones. Sweeps
-- wait for none. Senders into an open batch hold its row (share) until they commit; only sealing waits for them.
-- Errors: QU001 an argument is out of range. QU002 the batch exists with another name or on_complete. QU003 it is sealed or complete. QU004 it is unknown.

-- Refuses what cannot be sent when the batch is created, not when its last command ends. NULL is valid: nothing is sent then.
create or replace function pawl.on_complete_check (p_on_complete jsonb)
  returns void
  language plpgsql stable
as $$
declare
  v_unknown text;
begin
  if p_on_complete is null then
    return;
  end if;
  if jsonb_typeof(p_on_complete) <> 'object' then
    raise exception 'on_complete must be an object, got %', jsonb_typeof(p_on_complete) using errcode = 'QU001';
  end if;
  select left(k, 100) into v_unknown from jsonb_object_keys(p_on_complete) k where k not in ('domain', 'type', 'payload') limit 1;
  if found then
    raise exception 'on_complete may have domain, type and payload, got "%"', v_unknown using errcode = 'QU001';
  end if;
  if jsonb_typeof(p_on_complete -> 'domain') <> 'string' or jsonb_typeof(p_on_complete -> 'type') <> 'string' then
    raise exception 'on_complete.domain and on_complete.type must be strings' using errcode = 'QU001';
  end if;
  perform pawl.name_check('on_complete.domain', p_on_complete ->> 'domain', 63);
  perform pawl.name_check('on_complete.type', p_on_complete ->> 'type', 100);
  perform pawl.send_right_check('on_complete.domain', p_on_complete ->> 'domain');
  begin
    perform pawl.payload_bytes(p_on_complete -> 'payload');
  exception when sqlstate 'QU001' then
    raise exception 'on_complete.%', sqlerrm using errcode = 'QU001';
  end;
end
$$;

create or replace function pawl.batch_new (
  p_batch uuid default null, p_name text default null, p_on_complete jsonb default null)
  returns table (batch_id uuid, is_new boolean)
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
#variable_conflict use_column
declare
  v_id uuid := coalesce(p_batch, pawl.uuid7());
  v_other text;
begin
  perform pawl.on_complete_check(p_on_complete);
  if char_length(p_name) > 200 then
    raise exception 'name must have at most 200 characters, got %', char_length(p_name) using errcode = 'QU001';
  end if;
  insert into pawl.batch (batch_id, name, on_complete, created_at)
  values (v_id, p_name, p_on_complete, pawl.now())
  on conflict (batch_id) do nothing;
  if found then
    return query select v_id, true;
    return;
  end if;
  -- A new snapshot, in which the transaction that created the batch has committed. Arguments that are null are not compared. The row is
  -- locked for update now: two transactions that lock it for share to add commands, and then for update to seal it, would deadlock.
  select case when b.name is distinct from coalesce(p_name, b.name) then 'name'
              when b.on_complete is distinct from coalesce(p_on_complete, b.on_complete) then 'on_complete' end
  into v_other
  from pawl.batch b where b.batch_id = v_id
  for update;
  if v_other is not null then
    raise exception 'batch % exists already: % differs from what was sent first', v_id, v_other using errcode = 'QU002';
  end if;
  perform pawl.replay_barrier();
  return query select v_id, false;
end
$$;

-- The number of a batch that still takes commands; NULL for NULL. An open one is locked, so that it is not sealed meanwhile. A
-- sealed one accepts commands that it already has: a repeated request, whose first response was lost, adds nothing and gets the same
-- response.
create or replace function pawl.batch_open (p_batch uuid, p_domain_id integer, p_command_ids uuid[])
  returns bigint
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
declare
  v_batch pawl.batch;
begin
  if p_batch is null then
    return null;
  end if;
  -- Sealed is for ever: then nothing has to be locked.
  select * into v_batch from pawl.batch b where b.batch_id = p_batch;
  if found and v_batch.sealed_at is null then
    select * into v_batch from pawl.batch b where b.batch_id = p_batch for share;
  end if;
  if not found then
    raise exception 'batch % not found', p_batch using errcode = 'QU004';
  end if;
  if v_batch.sealed_at is not null and (p_command_ids is null or exists (
       select from unnest(p_command_ids) u (command_id)
       where not exists (
         select from pawl.command c
         where c.command_id = u.command_id and c.domain_id = p_domain_id and c.batch_id = v_batch.id)
         and not exists ( -- retention has deleted it, with what says of which batch it was
         select from pawl.kept_key k where k.command_id = u.command_id and k.domain_id = p_domain_id))) then
    raise exception 'batch % is sealed and takes no more commands', p_batch using errcode = 'QU003';
  end if;
  return v_batch.id;
end
$$;

-- No more commands will come: it is complete when the last one has ended, perhaps right now. Waits for transactions that have
-- sent into it and are still open.
create or replace function pawl.batch_seal (p_batch uuid)
  returns void
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
declare
  v_id bigint;
begin
  select b.id into v_id from pawl.batch b where b.batch_id = p_batch;
  if not found then
    raise exception 'batch % not found', p_batch using errcode = 'QU004';
  end if;
  update pawl.batch b set sealed_at = pawl.now() where b.id = v_id and b.sealed_at is null;
  if not found then
    perform pawl.replay_barrier();
  end if;
  perform pawl.batch_check(array[v_id]);
end
$$;

-- Complete those that are sealed and whose commands have all ended. Their last commands are sent by the name of their domain,
-- after every batch row is locked.
create or replace function pawl.batch_check (p_ids bigint[])
  returns void
  language plpgsql security definer set search_path = pawl, pg_temp
  set plan = ordered_cached
as $$
declare
  v_batch pawl.batch;
  v_open bigint;
  v_complete bigint[] := '{}'::bigint[];
begin
  perform from pawl.batch b
  where b.id = any (p_ids) and b.sealed_at is not null and b.completed_at is null
  order by b.id
  for update;
  for v_batch in
    select b.* from pawl.batch b
    where b.id = any (p_ids) and b.sealed_at is not null and b.completed_at is null
    order by b.id
  loop
    select c.id into v_open
    from pawl.command c
    where c.batch_id = v_batch.id and c.id > v_batch.ended_upto and not exists (select from pawl.outcome o where o.id = c.id)
    order by c.id
    limit 1;
    if found then
      update pawl.batch b set ended_upto = v_open - 1 where b.id = v_batch.id and b.ended_upto < v_open - 1;
    else
      update pawl.batch b set completed_at = pawl.now() where b.id = v_batch.id;
      v_complete := v_complete || v_batch.id;
    end if;
  end loop;
  if cardinality(v_complete) > 0 then
    perform pawl.batch_complete(v_complete);
  end if;
end
$$;

-- Commands of these batches have ended. Locks the batches, so that they can be checked, and leaves notes of those that another transaction has locked.
-- p_waits: one that is locked, if it is the only one, is waited for as long as another settle usually takes to commit. Returns the batches that it has locked.
create or replace function pawl.batch_hold (p_ids bigint[], p_waits boolean)
  returns bigint[]
  language plpgsql
as $$
declare
  v_held bigint[] := array(select b.id from pawl.batch b where b.id = any (p_ids) order by b.id for update skip locked);
  v_left bigint[];
begin
  if cardinality(v_held) < cardinality(p_ids) then
    v_left := array(
      select b.id from pawl.batch b where b.id = any (p_ids) and b.id <> all (v_held) and b.completed_at is null order by b.id);
    if p_waits and cardinality(v_left) = 1 and pawl.batch_wait(v_left[1]) then
      return v_held || v_left;
    end if;
    perform pawl.batch_note(v_left);
  end if;
  return v_held;
end
$$;

-- False: another transaction has it locked for longer.
create or replace function pawl.batch_wait (p_id bigint)
  returns boolean
  language plpgsql set lock_timeout = '10ms'
as $$
begin
  perform from pawl.batch b where b.id = p_id for update;
  return true;
exception when lock_not_available then
  return false;
end
$$;

-- Notes that pawl.batch_sweep has to check these batches after the commit. A note that is there stands for all who share its lock until they have ended: a
-- sweep takes none that is locked.
create or replace function pawl.batch_note (p_ids bigint[])
  returns void
  language plpgsql
as $$
declare
  v_noted bigint[] := array(
    select n.id from unnest(p_ids) u (id)
    cross join lateral (select h.id from pawl.batch_handover h where h.id = u.id order by h.number limit 1 for share skip locked) n);
begin
  insert into pawl.batch_handover (id) select i from unnest(p_ids) i where i <> all (v_noted);
end
$$;

-- Send the commands that batches asked for. One that cannot be sent is kept as a dead letter of type "on_complete".
create or replace function pawl.batch_complete (p_ids bigint[])
  returns void
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
declare
  v_batch pawl.batch;
begin
  for v_batch in
    select b.* from pawl.batch b
    where b.id = any (p_ids) and b.on_complete is not null
    order by b.on_complete ->> 'domain', b.id
  loop
    begin
      perform pawl.on_complete_send(v_batch.on_complete || jsonb_build_object('correlation_id', v_batch.batch_id));
    exception when others then
      if pawl.is_transient(sqlstate) then
        raise;
      end if;
      perform pawl.dead_letter_keep(array['on_complete'], array[v_batch.batch_id::text],
        array[v_batch.on_complete || jsonb_build_object('correlation_id', v_batch.batch_id)], array[sqlerrm], array[sqlstate], 60000);
    end;
  end loop;
end
$$;

-- A dead letter of type "on_complete", tried again in the transaction that resolves it.
create or replace function pawl.on_complete_retry (p_key text)
  returns void
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
begin
  perform pawl.on_complete_send(pawl.dead_letter_read('on_complete', p_key));
end
$$;

create or replace function pawl.on_complete_send (p_letter jsonb)
  returns void
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
begin
  perform pawl.send(p_letter ->> 'domain', p_letter ->> 'type', coalesce(p_letter -> 'payload', '{}'),
    p_correlation_id => p_letter ->> 'correlation_id');
  perform pawl.wake_later(array[pawl.domain_find(p_letter ->> 'domain')]);
end
$$;

-- Complete up to p_limit batches of which settles have left notes, and up to p_limit sealed ones that no settle completed. Batches that another transaction has
-- locked are skipped; their notes are written anew, behind the others. Where there are more sealed ones than the limit, the start is chosen at random, so
-- that each batch is read eventually. Returns how many it read.
create or replace function pawl.batch_sweep (p_limit integer)
  returns integer
  language plpgsql security definer set search_path = pawl, pg_temp
  set plan = ordered
as $$
declare
  v_first bigint;
  v_last bigint;
  v_noted bigint[];
  v_ids bigint[];
begin
  if (p_limit between 1 and 10000) is not true then
    raise exception 'limit must be from 1 to 10000' using errcode = 'QU001';
  end if;
  with taken as (
    delete from pawl.batch_handover h
    where h.number = any (array(select h.number from pawl.batch_handover h order by h.number limit p_limit for update skip locked))
    returning h.id
  )
  select array_agg(distinct t.id) into v_noted from taken t;
  v_noted := pawl.batch_hold(coalesce(v_noted, '{}'), false);
  perform pawl.batch_check_apart(v_noted);
  select b.id into v_first from pawl.batch b where b.sealed_at is not null and b.completed_at is null order by b.id limit 1;
  if not found then
    return cardinality(v_noted);
  end if;
  select b.id into v_last from pawl.batch b
  where b.sealed_at is not null and b.completed_at is null and b.id >= v_first
  order by b.id offset p_limit limit 1;
  if found then
    select b.id into v_last from pawl.batch b where b.sealed_at is not null and b.completed_at is null order by b.id desc limit 1;
    v_first := v_first + floor(random() * (v_last - v_first + 1))::bigint;
  end if;
  v_ids := array(
    select b.id from pawl.batch b
    where b.sealed_at is not null and b.completed_at is null and b.id >= v_first
    order by b.id
    limit p_limit
    for update skip locked);
  perform pawl.batch_check_apart(v_ids);
  return cardinality(v_noted) + cardinality(v_ids);
end
$$;

-- One batch that fails stops none beside it: what fails together is halved until it is alone. The next sweep tries it again. The batches are locked: what
-- checks and completes them waits for no other lock of an application.
create or replace function pawl.batch_check_apart (p_ids bigint[])
  returns void
  language plpgsql security definer set search_path = pawl, pg_temp set lock_timeout = '100ms'
as $$
declare
  v_count integer := cardinality(p_ids);
begin
  if v_count = 0 then
    return;
  end if;
  begin
    perform pawl.batch_check(p_ids);
    return;
  exception when others then
    if pawl.is_transient(sqlstate) then
      raise;
    end if;
    if v_count = 1 then
      raise warning 'batch number % cannot be completed: %', p_ids[1], sqlerrm;
      return;
    end if;
  end;
  perform pawl.batch_check_apart(p_ids[:v_count / 2]);
  perform pawl.batch_check_apart(p_ids[v_count / 2 + 1:]);
end
$$;

create or replace function pawl.batch_progress (p_batch uuid)
  returns table (batch_id uuid, name text, status text, total bigint, pending bigint, in_progress bigint, completed bigint,
                 failed bigint, canceled bigint, in_tsq bigint, created_at bigint, completed_at bigint)
  language sql stable security definer set search_path = pawl, pg_temp
as $$
  select b.batch_id, b.name,
         case when b.completed_at is not null then 'COMPLETED' when b.sealed_at is not null then 'SEALED' else 'OPEN' end,
         n.total, n.total - n.in_progress - n.completed - n.failed - n.canceled - n.in_tsq, n.in_progress, n.completed,
         n.failed, n.canceled, n.in_tsq, pawl.micros(b.created_at), pawl.micros(b.completed_at)
  from pawl.batch b,
  lateral (
    select count(c.id) as total,
           count(l.id) as in_progress,
           count(*) filter (where o.status = 'COMPLETED') as completed,
           count(*) filter (where o.status = 'FAILED') as failed,
           count(*) filter (where o.status = 'CANCELED') as canceled,
           count(t.id) as in_tsq
    from pawl.command c
    left join pawl.outcome o on o.id = c.id
    left join pawl.lease l on l.id = c.id
    left join pawl.tsq t on t.id = c.id
    where c.batch_id = b.id
  ) n
  where b.batch_id = p_batch
$$;
