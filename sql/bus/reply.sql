-- reply.sql - what the end of a command causes: a reply, and progress of its batch.
--
-- reply_to names the target of the reply:
--
--     QUEUE                  a message in this queue of schema pgmq
--     command:DOMAIN/TYPE    a command, whose payload is the reply (pawl.reply_commands)
--     another                a target of a module (sql/app/reserved.sql)
--
-- Invariants: pawl.after_end is called once for each command that ends, in the transaction that ends it, so a reply is sent exactly
-- once. A target or a batch that fails keeps no command from ending: a reply that cannot be sent becomes a dead letter of type
-- "reply", a batch that cannot be locked is completed by pawl.batch_sweep.
-- Lock order: targets by name, batch rows by id (pawl.batch_hold). Bounds, because the transaction is shared with settles of other domains: 10 ms for all
-- targets together, then 20 ms for each of three targets that are locked and 1 ms for each further one; 10 ms for a command whose id another transaction is
-- sending; 10 ms for a batch.
-- Errors: QU001 a target is malformed, or too many reply queues would have to be created, in the call or in all. QU002 the command that a reply would become
-- exists with other contents.

-- Is it a queue? Names of queues have no colon.
create or replace function pawl.reply_is_queue (p_target text)
  returns boolean
  language sql immutable
as $$
  select p_target not like '%:%'
$$;

-- May a queue for replies have this name? PGMQ has the bound, and some clients put the name into statements unquoted.
create or replace function pawl.reply_is_queue_name (p_name text)
  returns boolean
  language sql immutable
as $$
  select p_name ~ '^[A-Za-z0-9_.-]{1,47}$' and p_name !~* '--|_(pkey|msg_id_seq|vt_idx|fifo_idx|group_idx)$'
$$;

-- Raises for a target that no reply can be sent to. NULL elements are valid: nothing is sent then.
create or replace function pawl.reply_to_check (p_targets text[])
  returns void
  language plpgsql stable
as $$
declare
  v_target text;
  v_commands text;
begin
  for v_target in select distinct t from unnest(p_targets) t where t is not null order by t loop
    continue when pawl.reply_is_queue_name(v_target);
    continue when pawl.reserved_target_is_open(v_target);
    select r.commands into v_commands from pawl.reserved_domains() r
    where substring(v_target from '^command:([^/]*)/') ~ r.pattern and r.refuses_replies;
    if found then
      raise exception 'reply_to must not name a domain of %, got "%"', v_commands, left(v_target, 80) using errcode = 'QU001';
    end if;
    continue when pawl.is_name(substring(v_target from '^command:([^/]*)/'), 63) and pawl.is_name(substring(v_target from '/(.*)$'), 100);
    raise exception 'reply_to must be a queue (1 to 47 letters, digits, "_", "." or single "-") or command:DOMAIN/TYPE, got "%"',
      left(v_target, 80) using errcode = 'QU001';
  end loop;
end
$$;

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

-- Reply queues are queues of schema pgmq, so any client of PGMQ can read them. Each new one takes two tables, their indexes, some twenty
-- locks until the commit and some 10 ms, for which a caller's connection is not there for others. So a call makes few.
create or replace function pawl.reply_queues_per_call ()
  returns integer
  language sql immutable
as $$
  select 10
$$;

-- Whose share of the reply queues a send uses: the sender that a pod names, by its API key, or else the login, whatever it says about itself.
create or replace function pawl.reply_queue_creator (p_actor text)
  returns text
  language plpgsql stable
as $$
begin
  return case when has_function_privilege(session_user, 'pawl.command_decide(uuid[],text[],text,text,text,jsonb)', 'execute')
              then coalesce(p_actor, session_user) else session_user end;
end
$$;

-- p_creator null: it counts for no sender.
create or replace function pawl.reply_queues (p_names text[], p_creator text)
  returns void
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
declare
  v_new text[] := pawl.reply_queues_new(p_names);
  v_name text;
begin
  if cardinality(v_new) > pawl.reply_queues_per_call() then
    raise exception 'reply_to names % queues that do not exist, one of them "%"; one call creates at most %: create them by pgmq.create() first',
      cardinality(v_new), v_new[1], pawl.reply_queues_per_call()
      using errcode = 'QU001', hint = 'Use one reply queue per reader, and correlation_id to distinguish replies.';
  end if;
  foreach v_name in array v_new loop
    perform pawl.reply_queue_create(v_name, p_creator);
  end loop;
end
$$;

-- The queues that have to be created, by name: one spelling of each.
create or replace function pawl.reply_queues_new (p_names text[])
  returns text[]
  language sql security definer set search_path = pawl, pg_temp
as $$
  select array(
    select min(n) from unnest(p_names) n
    where pawl.reply_is_queue(n) and not pawl.reply_queue_exists(n)
    group by lower(n)
    order by 1)
$$;

-- How many queues pawl creates in all, from now on. Those that are there stay.
create or replace function pawl.reply_queues_bound (p_most integer)
  returns void
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
begin
  if (p_most between 1 and 100000) is not true then
    raise exception 'most must be from 1 to 100000, got %', coalesce(p_most::text, 'null') using errcode = 'QU001';
  end if;
  update pawl.reply_queue_bound b set most = p_most where b.most <> p_most;
end
$$;

-- How many of those there are, in percent.
create or replace function pawl.reply_queues_percent ()
  returns bigint
  language sql stable security definer set search_path = pawl, pg_temp
as $$
  select (select count(*) from pawl.reply_queue) * 100 / (select b.most from pawl.reply_queue_bound b)
$$;

-- Under the queue's lock, because its reader may be creating it: then it is the reader's, and is not recorded here. created_at is that
-- of pgmq.meta, so that a queue that its reader drops and creates again is recognized (pawl.reply_queue_is_own).
create or replace function pawl.reply_queue_create (p_name text, p_creator text)
  returns void
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
declare
  v_most integer;
  v_share integer; -- of one sender: a quarter, so that no sender uses up those of all
begin
  perform pgmq.acquire_queue_lock(p_name);
  if pawl.reply_queue_exists(p_name) then
    return;
  end if;
  -- Transactions that create others at the same time are not counted: they would have to wait for each other.
  select b.most, greatest(pawl.reply_queues_per_call(), b.most / 4) into v_most, v_share from pawl.reply_queue_bound b;
  if (select count(*) from pawl.reply_queue r where r.name <> p_name) >= v_most then
    raise exception 'reply_to names the queue "%", which does not exist, and pawl creates at most % queues (PAWL_REPLY_QUEUES_MAX): create it by pgmq.create() first',
      p_name, v_most using errcode = 'QU001';
  end if;
  if (select count(*) from pawl.reply_queue r where r.creator = p_creator and r.name <> p_name) >= v_share then
    raise exception 'reply_to names the queue "%", which does not exist, and "%" has created %, the most for one sender (a quarter of PAWL_REPLY_QUEUES_MAX): create it by pgmq.create() first',
      p_name, p_creator, v_share using errcode = 'QU001', hint = 'Use one reply queue per reader, and correlation_id to distinguish replies.';
  end if;
  perform pgmq.create(p_name);
  insert into pawl.reply_queue (name, creator, created_at, used_at)
  select p_name, p_creator, m.created_at, pawl.now() from pgmq.meta m where m.queue_name = p_name
  on conflict (name) do update set creator = excluded.creator, created_at = excluded.created_at, used_at = excluded.used_at, last_msg_id = 0;
end
$$;

-- The same as reply_queues for a transaction that several callers share: creates what it can under the session's lock_timeout, which the caller
-- has made short, and returns the names that another transaction is creating. After five waits, or when it has made as many as a call makes, the
-- rest is not tried.
create or replace function pawl.reply_queues_busy (p_names text[], p_creator text)
  returns text[]
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
declare
  v_new text[] := pawl.reply_queues_new(p_names);
  v_busy text[] := '{}'::text[];
begin
  for v_at in 1 .. cardinality(v_new) loop
    if cardinality(v_busy) >= 5 or v_at - cardinality(v_busy) > pawl.reply_queues_per_call() then
      return v_busy || v_new[v_at:];
    end if;
    begin
      perform pawl.reply_queue_create(v_new[v_at], p_creator);
    exception when lock_not_available then
      v_busy := v_busy || v_new[v_at];
    end;
  end loop;
  return v_busy;
end
$$;

-- Contents and target of each reply.
create or replace function pawl.replies (p_ids bigint[])
  returns table (id bigint, command_id uuid, domain text, queue text, message jsonb)
  language sql stable
as $$
  select c.id, c.command_id, d.name, c.reply_to,
         jsonb_build_object('command_id', c.command_id, 'domain', d.name, 'type', c.type, 'status', pawl.reply_status(c.id, o.status),
           'result', o.result, 'error', o.error, 'correlation_id', c.correlation_id)
  from pawl.command c
  join pawl.outcome o on o.id = c.id
  cross join lateral (select n.name from pawl.domain_name n where n.id = c.domain_id limit 1) d
  where c.id = any (p_ids) and c.reply_to is not null
$$;

-- The id of the command that the reply of a command becomes: a UUID of version 8 that follows from the command's domain and id. So a
-- reply is sent once, and any client can compute the id.
create or replace function pawl.reply_command_id (p_domain text, p_command_id uuid)
  returns uuid
  language sql immutable
as $$
  select encode(set_byte(set_byte(h.bytes, 6, get_byte(h.bytes, 6) & 15 | 128), 8, get_byte(h.bytes, 8) & 63 | 128), 'hex')::uuid
  from (select substring(sha256(convert_to(p_domain || '/' || p_command_id, 'UTF8')) from 1 for 16)) h (bytes)
$$;

-- Send replies as commands. Priority, order key and correlation id are those of the command that has ended, so a chain of commands keeps
-- the order of its key; the other fields have their defaults. Returns an element for each reply: why it cannot be sent, or null.
create or replace function pawl.reply_commands (p_target text, p_replies jsonb[])
  returns text[]
  language plpgsql
as $$
declare
  v_domain text := substring(p_target from '^command:([^/]+)/');
  v_type text := substring(p_target from '/(.*)$');
  v_all uuid[];
  v_large uuid[];
  v_ids uuid[];
  v_payloads jsonb[];
  v_priorities integer[];
  v_keys text[];
  v_correlations text[];
  v_count integer;
  v_refusals text[];
begin
  perform pawl.reply_to_check(array[p_target]);
  select array_agg(i.id order by i.n), array_agg(i.id) filter (where i.is_large),
         array_agg(i.id order by i.n) filter (where not i.is_large), array_agg(i.reply order by i.n) filter (where not i.is_large),
         array_agg(i.priority order by i.n) filter (where not i.is_large), array_agg(i.order_key order by i.n) filter (where not i.is_large),
         array_agg(i.correlation_id order by i.n) filter (where not i.is_large), count(*) filter (where not i.is_large)
  into v_all, v_large, v_ids, v_payloads, v_priorities, v_keys, v_correlations, v_count
  from (
    select u.n, u.reply, u.reply ->> 'correlation_id' as correlation_id, c.priority, c.order_key,
           pawl.json_is_large(u.reply) as is_large,
           pawl.reply_command_id(u.reply ->> 'domain', (u.reply ->> 'command_id')::uuid) as id
    from unnest(p_replies) with ordinality u (reply, n)
    left join lateral ( -- none, when a dead letter is retried after retention has deleted the command
      select c.priority, c.order_key from pawl.command c
      where c.command_id = (u.reply ->> 'command_id')::uuid and c.domain_id = pawl.domain_find(u.reply ->> 'domain') limit 1) c on true
  ) i;
  -- By grouping, because row by row a join of two lists takes the square of their length.
  v_refusals := array(
    select max(r.refusal)
    from (
      select a.id, a.n, null from unnest(v_all) with ordinality a (id, n)
      union all
      select l.id, null, format('the reply has more than %s bytes as text', pawl.json_max()) from unnest(v_large) l (id)
      union all
      select s.command_id, null,
             case when s.status = 'BUSY' then format('another transaction that has not ended sends command %s', s.command_id)
                  else format('command %s exists already: %s', s.command_id, s.refusal) end
      from pawl.send_items(true, v_domain, array_fill(v_type, array[v_count]), v_payloads, v_ids, null, v_priorities, null, null,
        v_correlations, null, 'reply', v_keys) s
      where v_count > 0 and (s.status = 'BUSY' or s.refusal is not null)
    ) r (id, n, refusal)
    group by r.id
    order by max(r.n));
  perform pawl.wake_later(array[pawl.domain_find(v_domain)]);
  return v_refusals;
end
$$;

-- Send replies to one target. Returns null, or an element for each reply: why it cannot be sent, or null.
create or replace function pawl.reply_deliver (p_target text, p_replies jsonb[])
  returns text[]
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
begin
  if p_target like 'command:%' then
    return pawl.reply_commands(p_target, p_replies);
  end if;
  if not pawl.reply_is_queue(p_target) and pawl.reserved_target_deliver(p_target, p_replies) then
    return null;
  end if;
  perform pawl.reply_queues(array[p_target], null); -- its reader may have dropped it since the send
  perform pgmq.send_batch(p_target, p_replies);
  return null;
end
$$;

-- Keep replies that could not be sent as dead letters. p_refusals: the reasons; a reply without one was sent.
create or replace function pawl.replies_keep (p_target text, p_keys text[], p_replies jsonb[], p_refusals text[], p_code text)
  returns void
  language plpgsql
as $$
begin
  perform from (
    select array_agg('reply'::text) as types, array_agg(u.key) as keys,
           array_agg(jsonb_build_object('queue', p_target, 'message', u.reply)) as letters,
           array_agg(format(case when pawl.reply_is_queue(p_target) then 'queue "%s": %s' else '%s: %s' end, p_target, u.refusal)) as messages,
           array_agg(p_code) as codes
    from unnest(p_keys, p_replies, p_refusals) u (key, reply, refusal)
    where u.refusal is not null
    having count(*) > 0
  ) l
  cross join lateral pawl.dead_letter_keep(l.types, l.keys, l.letters, l.messages, l.codes,
    -- A queue may be locked for long, because its owner alters it; other targets are locked for moments only.
    case when p_code = '55P03' and not pawl.reply_is_queue(p_target) then 1000 else 60000 end) k;
end
$$;

-- p_apart: each target by itself, because together they failed. A reply that cannot be sent is kept as a dead letter.
create or replace function pawl.replies_send (p_ids bigint[], p_apart boolean)
  returns void
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
declare
  v_left integer := pawl.reply_queues_per_call(); -- queues that may be created again here
  v_is_missing boolean;
  v_waits integer := 0;
  v_target text;
  v_keys text[];
  v_replies jsonb[];
  v_refusals text[];
  v_code text;
begin
  for v_target, v_keys, v_replies in
    select r.queue, array_agg(r.domain || '/' || r.command_id order by r.id), array_agg(r.message order by r.id)
    from pawl.replies(p_ids) r
    group by r.queue
    order by r.queue
  loop
    v_code := 'QU002';
    v_is_missing := pawl.reply_is_queue(v_target) and not pawl.reply_queue_exists(v_target);
    v_left := v_left - v_is_missing::integer;
    if not p_apart and v_left < 0 then
      raise exception 'too many reply queues are missing' using errcode = 'QU001'; -- the caller tries them apart
    elsif not p_apart then
      v_refusals := pawl.reply_deliver(v_target, v_replies);
    else
      -- A queue that is locked costs 20 ms, from the fourth on 1 ms: other commands wait for this transaction.
      perform set_config('lock_timeout', case when v_waits < 3 then '20ms' else '1ms' end, true);
      begin
        if v_is_missing and v_left < 0 then
          raise exception 'too many reply queues are missing' using errcode = 'QU001';
        end if;
        v_refusals := pawl.reply_deliver(v_target, v_replies);
      exception when others then
        if pawl.is_transient(sqlstate) then
          raise;
        end if;
        v_waits := v_waits + (sqlstate = '55P03')::integer;
        v_code := sqlstate;
        v_refusals := array_fill(sqlerrm, array[cardinality(v_replies)]);
      end;
    end if;
    if v_refusals is not null then
      perform set_config('lock_timeout', '100ms', true);
      perform pawl.replies_keep(v_target, v_keys, v_replies, v_refusals, v_code);
    end if;
  end loop;
end
$$;

-- A dead letter of type "reply", tried again in the transaction that resolves it.
create or replace function pawl.reply_retry (p_key text)
  returns void
  language plpgsql security definer set search_path = pawl, pg_temp set lock_timeout = '100ms'
as $$
declare
  v_letter jsonb := pawl.dead_letter_read('reply', p_key);
  v_refusals text[] := pawl.reply_deliver(v_letter ->> 'queue', array[v_letter -> 'message']);
begin
  if v_refusals[1] is not null then
    raise exception '%: %', v_letter ->> 'queue', v_refusals[1] using errcode = 'QU002';
  end if;
end
$$;

-- Subtransactions cost a transaction id, so there is one for all replies, and one for each queue only after that failed.
create or replace function pawl.after_end (p_ids bigint[])
  returns void
  language plpgsql security definer set search_path = pawl, pg_temp set lock_timeout = '100ms'
as $$
declare
  v_batches bigint[];
begin
  if exists (select from pawl.command c where c.id = any (p_ids) and c.reply_to is not null) then
    begin
      perform set_config('lock_timeout', '10ms', true);
      perform pawl.replies_send(p_ids, false);
    exception when others then
      if pawl.is_transient(sqlstate) then
        raise;
      end if;
      perform pawl.replies_send(p_ids, true);
    end;
    perform set_config('lock_timeout', '100ms', true);
  end if;
  -- Read first: a batch that is still open takes no lock here, because its senders hold one until they commit.
  v_batches := array(
    select b.id from pawl.batch b
    where b.id in (select c.batch_id from pawl.command c where c.id = any (p_ids) and c.batch_id is not null)
      and b.sealed_at is not null and b.completed_at is null
    order by b.id);
  if cardinality(v_batches) > 0 then
    v_batches := pawl.batch_hold(v_batches, true);
    begin
      perform pawl.batch_check(v_batches);
    exception when others then
      if pawl.is_transient(sqlstate) then
        raise;
      end if;
      perform pawl.batch_note(v_batches);
    end;
  end if;
end
$$;
