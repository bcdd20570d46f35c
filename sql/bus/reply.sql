-- reply.sql - who waits for the end of a command: its sender's reply queue, and its batch.
--
-- Invariants: pawl.after_end is called once for each command that ends, in the transaction that ends it, so a reply is sent exactly
-- once. A queue or a batch that fails keeps no command from ending: a reply that cannot be sent becomes a dead letter of type
-- "reply", a batch that cannot be locked is completed by pawl.batch_sweep.
-- Lock order: reply queues by name, batch rows by id. Bounds: 100 ms for all queues together, then 100 ms for each of three queues that
-- are locked and 1 ms for each further one; 1 s for batches.
-- Errors: QU001 too many reply queues would have to be made.

-- Names that differ only by case share their tables, so the table decides. A queue that pgmq.meta has without its table is not created
-- again: an operator has to see that it is broken.
create or replace function pawl.reply_queue_exists (p_name text)
  returns boolean
  language plpgsql volatile -- each call has a new snapshot: the queue may just have been created
as $$
begin
  return exists (select from pgmq.meta m where m.queue_name = p_name)
      or exists ( -- not to_regclass(), which may not see yet what another transaction has just created
        select from pg_catalog.pg_class c
        where c.relnamespace = 'pgmq'::regnamespace and c.relname = pgmq.format_table_name(p_name, 'q')::name);
end
$$;

-- Reply queues are queues of schema pgmq, so any client of PGMQ can read them. Each new one takes two tables, their indexes
-- and some twenty locks until the commit, so a call makes few.
create or replace function pawl.reply_queues (p_names text[])
  returns void
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
declare
  v_name text;
begin
  foreach v_name in array pawl.reply_queues_new(p_names) loop
    perform pawl.reply_queue_create(v_name);
  end loop;
end
$$;

-- Those that have to be created, by name: one spelling of each.
create or replace function pawl.reply_queues_new (p_names text[])
  returns text[]
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
declare
  v_most constant integer := 100;
  v_new text[] := array(
    select min(n) from unnest(p_names) n
    where n is not null and n not like 'response:%' and not pawl.reply_queue_exists(n)
    group by lower(n)
    order by 1);
begin
  if cardinality(v_new) > v_most then
    raise exception 'reply_to names % queues that do not exist; one call creates at most %', cardinality(v_new), v_most
      using errcode = 'QU001', hint = 'Use one reply queue per reader and correlation_id to tell replies apart.';
  end if;
  return v_new;
end
$$;

-- Under the queue's lock, because its reader may be creating it: then it is the reader's, and is not recorded here. created_at is that
-- of pgmq.meta, so that a queue that its reader drops and creates again is recognized (pawl.reply_queue_is_own).
create or replace function pawl.reply_queue_create (p_name text)
  returns void
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
begin
  perform pgmq.acquire_queue_lock(p_name);
  if pawl.reply_queue_exists(p_name) then
    return;
  end if;
  perform pgmq.create(p_name);
  insert into pawl.reply_queue (name, created_at, used_at)
  select p_name, m.created_at, pawl.now() from pgmq.meta m where m.queue_name = p_name
  on conflict (name) do update set created_at = excluded.created_at, used_at = excluded.used_at, last_msg_id = 0;
end
$$;

-- The same as reply_queues for a transaction that others share: creates what it can under the session's lock_timeout, which the caller
-- has made short, and returns the names that another transaction is creating. After five waits the rest is not tried.
create or replace function pawl.reply_queues_busy (p_names text[])
  returns text[]
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
declare
  v_new text[] := pawl.reply_queues_new(p_names);
  v_busy text[] := '{}'::text[];
begin
  for v_at in 1 .. cardinality(v_new) loop
    if cardinality(v_busy) >= 5 then
      return v_busy || v_new[v_at:];
    end if;
    begin
      perform pawl.reply_queue_create(v_new[v_at]);
    exception when lock_not_available then
      v_busy := v_busy || v_new[v_at];
    end;
  end loop;
  return v_busy;
end
$$;

-- What a reply says, and where it goes.
create or replace function pawl.replies (p_ids bigint[])
  returns table (id bigint, command_id uuid, domain text, queue text, message jsonb)
  language sql stable
as $$
  select c.id, c.command_id, d.name, c.reply_to,
         jsonb_build_object('command_id', c.command_id, 'domain', d.name, 'type', c.type, 'status', o.status,
           'result', o.result, 'error', o.error, 'correlation_id', c.correlation_id)
  from pawl.command c
  join pawl.outcome o on o.id = c.id
  cross join lateral (select n.name from pawl.domain_name n where n.id = c.domain_id limit 1) d
  where c.id = any (p_ids) and c.reply_to is not null
$$;

-- Where replies go: "response:NUMBER/NAME" is a response of that name to a process, anything else a queue.
create or replace function pawl.reply_deliver (p_target text, p_replies jsonb[])
  returns void
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
begin
  if p_target like 'response:%' then
    perform pawl.process_reply(substring(p_target from '^response:([0-9]+)/')::bigint, substring(p_target from '/(.*)$'), p_replies);
    return;
  end if;
  perform pawl.reply_queues(array[p_target]); -- its reader may have dropped it since the send
  perform pgmq.send_batch(p_target, p_replies);
end
$$;

-- p_apart: each queue by itself, because together they failed. A reply that cannot be sent is kept as a dead letter.
create or replace function pawl.replies_send (p_ids bigint[], p_apart boolean)
  returns void
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
declare
  v_left integer := 100; -- queues that may be made again here
  v_waits integer := 0;
  v_queue text;
  v_keys text[];
  v_replies jsonb[];
begin
  for v_queue, v_keys, v_replies in
    select r.queue, array_agg(r.domain || '/' || r.command_id order by r.id), array_agg(r.message order by r.id)
    from pawl.replies(p_ids) r
    group by r.queue
    order by r.queue
  loop
    if not p_apart then
      perform pawl.reply_deliver(v_queue, v_replies);
      continue;
    end if;
    -- A queue that is locked costs 100 ms, from the fourth on 1 ms: the commands of others wait for this transaction.
    perform set_config('lock_timeout', case when v_waits < 3 then '100ms' else '1ms' end, true);
    begin
      if not pawl.reply_queue_exists(v_queue) then
        v_left := v_left - 1;
        if v_left < 0 then
          raise exception 'too many reply queues are missing' using errcode = 'QU001';
        end if;
      end if;
      perform pawl.reply_deliver(v_queue, v_replies);
    exception when others then
      if pawl.is_transient(sqlstate) then
        raise;
      end if;
      v_waits := v_waits + (sqlstate = '55P03')::integer;
      perform set_config('lock_timeout', '1s', true);
      perform pawl.dead_letter_keep(array_fill('reply'::text, array[cardinality(v_keys)]), v_keys,
        array(select jsonb_build_object('queue', v_queue, 'message', r) from unnest(v_replies) with ordinality u (r, n) order by u.n),
        array_fill(format('queue "%s": %s', v_queue, sqlerrm), array[cardinality(v_keys)]),
        array_fill(sqlstate, array[cardinality(v_keys)]), 60000);
    end;
  end loop;
end
$$;

-- A dead letter of type "reply", tried again in the transaction that resolves it.
create or replace function pawl.reply_retry (p_letter jsonb)
  returns void
  language plpgsql security definer set search_path = pawl, pg_temp set lock_timeout = '1s'
as $$
begin
  perform pawl.reply_deliver(p_letter ->> 'queue', array[p_letter -> 'message']);
end
$$;

-- Subtransactions cost a transaction id, so there is one for all replies, and one for each queue only after that failed.
create or replace function pawl.after_end (p_ids bigint[])
  returns void
  language plpgsql security definer set search_path = pawl, pg_temp set lock_timeout = '1s'
as $$
declare
  v_batches bigint[];
begin
  if exists (select from pawl.command c where c.id = any (p_ids) and c.reply_to is not null) then
    begin
      perform set_config('lock_timeout', '100ms', true);
      perform pawl.replies_send(p_ids, false);
    exception when others then
      if pawl.is_transient(sqlstate) then
        raise;
      end if;
      perform pawl.replies_send(p_ids, true);
    end;
    perform set_config('lock_timeout', '1s', true);
  end if;
  -- Read first: a batch that is still open takes no lock here, because its senders hold one until they commit.
  v_batches := array(
    select b.id from pawl.batch b
    where b.id in (select c.batch_id from pawl.command c where c.id = any (p_ids) and c.batch_id is not null)
      and b.sealed_at is not null and b.completed_at is null
    order by b.id);
  if cardinality(v_batches) > 0 then
    begin
      perform pawl.batch_check(v_batches);
    exception when others then
      if pawl.is_transient(sqlstate) then
        raise;
      end if; -- else pawl.batch_sweep completes it
    end;
  end if;
end
$$;
