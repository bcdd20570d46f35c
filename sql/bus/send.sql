-- send.sql - put commands in the queue, in the caller's own transaction.
--
-- Invariant: (command id, domain) is one command for as long as its key is kept: while the command is there, and then in
-- pawl.kept_key. A repeated send changes nothing and returns the status of the first one; with another field, other than the delay, it is
-- refused, and the refusal names the field (verdict QU002). Of a command that retention has deleted only type and payload are known.
-- Locks: the batch's row (share), new reply queues by name, then the unique key of each id, by id (send_put.sql). pawl.send waits for another
-- transaction that sends the same id, and for a batch that is being sealed or a reply queue that is being created, until the session's
-- lock_timeout. Callers that share a transaction with others call pawl.send_items with p_nowait, which waits at most 10 ms for each of
-- them, at most five times for ids and for queues, and returns BUSY for what it could not decide.
-- Errors: QU001 arguments out of range, arrays of different length, a payload too large. QU003 the batch is closed, QU004 unknown.

-- The status that a repeated send returns: that of the first one. UNKNOWN: there is no such command.
create or replace function pawl.command_status (p_id bigint)
  returns text
  language sql stable
as $$
  select coalesce(
    (select o.status from pawl.outcome o where o.id = p_id),
    (select 'IN_PROGRESS' from pawl.lease l where l.id = p_id),
    (select 'IN_TSQ' from pawl.tsq t where t.id = p_id),
    (select 'PENDING' from pawl.command c where c.id = p_id),
    'UNKNOWN')
$$;

-- Raises unless the arguments of a send are in range. Returns how many commands there are. Elements that are null have their defaults,
-- but for types.
create or replace function pawl.send_check (
  p_types text[], p_payloads jsonb[], p_command_ids uuid[], p_delays_ms bigint[], p_priorities integer[], p_max_attempts integer[],
  p_reply_to text[], p_correlation_ids text[], p_order_keys text[], p_actor text)
  returns integer
  language plpgsql
as $$
declare
  v_count integer := coalesce(cardinality(p_types), 0);
begin
  if v_count not between 1 and 100000 then
    raise exception 'types must have 1 to 100000 elements, got %', v_count using errcode = 'QU001';
  end if;
  perform pawl.array_check('types', p_types, v_count, 'QU001'), pawl.array_check('payloads', p_payloads, v_count, 'QU001'),
          pawl.array_check('command_ids', p_command_ids, v_count, 'QU001', true),
          pawl.array_check('delays_ms', p_delays_ms, v_count, 'QU001', true),
          pawl.array_check('priorities', p_priorities, v_count, 'QU001', true),
          pawl.array_check('max_attempts', p_max_attempts, v_count, 'QU001', true),
          pawl.array_check('reply_to', p_reply_to, v_count, 'QU001', true),
          pawl.array_check('correlation_ids', p_correlation_ids, v_count, 'QU001', true),
          pawl.array_check('order_keys', p_order_keys, v_count, 'QU001', true);
  if array_remove(p_types, p_types[1]) <> '{}' or not pawl.is_name(p_types[1], 100) then -- nearly always there is one
    perform pawl.name_check('type', t, 100) from unnest(p_types) t where not pawl.is_name(t, 100);
  end if;
  if 0 > any (p_priorities) or 9 < any (p_priorities) then
    raise exception 'priority must be from 0 to 9, got %', (select p from unnest(p_priorities) p where p not between 0 and 9 limit 1) using errcode = 'QU001';
  end if;
  if 1 > any (p_max_attempts) or 1000 < any (p_max_attempts) then
    raise exception 'max_attempts must be from 1 to 1000, got %', (select a from unnest(p_max_attempts) a where a not between 1 and 1000 limit 1)
      using errcode = 'QU001';
  end if;
  if p_delays_ms is not null then
    perform pawl.delays_check(p_delays_ms, true);
  end if;
  if p_reply_to is not null then
    perform pawl.reply_to_check(p_reply_to);
  end if;
  if p_correlation_ids is not null and exists (select from unnest(p_correlation_ids) c where char_length(c) > 200) then
    raise exception 'correlation_id must have at most 200 characters' using errcode = 'QU001';
  end if;
  if p_order_keys is not null and exists (select from unnest(p_order_keys) k where char_length(k) not between 1 and 200) then
    raise exception 'order_key must have 1 to 200 characters' using errcode = 'QU001';
  end if;
  if char_length(p_actor) > 400 then
    raise exception 'actor must have at most 400 characters, got %', char_length(p_actor) using errcode = 'QU001';
  end if;
  return v_count;
end
$$;

-- Raises unless the session may send to the domain. By its login, because a function may run as its owner.
create or replace function pawl.send_right_check (p_field text, p_domain text)
  returns void
  language plpgsql stable
as $$
declare
  v_commands text;
begin
  if p_domain not like '%:%' then -- of no module
    return;
  end if;
  select r.commands into v_commands from pawl.reserved_domains() r
  where p_domain ~ r.pattern and not has_function_privilege(session_user, r.sender, 'execute');
  if found then
    raise exception '% must not name a domain of %, got "%": the login may not send there', p_field, v_commands, left(p_domain, 80)
      using errcode = '42501';
  end if;
end
$$;

-- Locks the batch of a send, and creates its reply queues. With p_nowait it waits 10 ms for each; is_held: another transaction holds the
-- batch; busy: the ids of commands whose reply queues another transaction is creating.
-- p_command_ids: as the caller gave them, p_ids: all of them.
create or replace function pawl.send_open (
  p_nowait boolean, p_domain_id integer, p_batch_id uuid, p_command_ids uuid[], p_ids uuid[], p_reply_to text[], p_creator text,
  out batch bigint, out is_held boolean, out busy uuid[])
  language plpgsql
as $$
declare
  v_lock_timeout text := current_setting('lock_timeout');
  v_queues text[];
begin
  is_held := false;
  if p_nowait is not true then
    batch := pawl.batch_open(p_batch_id, p_domain_id, p_command_ids);
    perform pawl.reply_queues(p_reply_to, p_creator) where p_reply_to is not null;
    return;
  end if;
  perform set_config('lock_timeout', '10ms', true);
  if p_batch_id is not null then
    begin
      batch := pawl.batch_open(p_batch_id, p_domain_id, p_command_ids);
    exception when lock_not_available then
      is_held := true;
    end;
  end if;
  if p_reply_to is not null and not is_held then
    v_queues := pawl.reply_queues_busy(p_reply_to, p_creator);
    if cardinality(v_queues) > 0 then
      busy := array(select u.id from unnest(p_ids, p_reply_to) u (id, reply_to) where u.reply_to = any (v_queues));
    end if;
  end if;
  perform set_config('lock_timeout', v_lock_timeout, true);
end
$$;

-- Why a field of a repeated send is refused.
create or replace function pawl.sent_otherwise (p_field text, p_given text, p_sent text)
  returns text
  language sql immutable
as $$
  select format('%s is %s, it was sent as %s', p_field, coalesce('"' || p_given || '"', 'none'), coalesce('"' || p_sent || '"', 'none'))
$$;

-- What send_items returns when some of the commands are not new. p_is_held: the batch could not be read.
-- By a window over both lists, because a join of two lists row by row takes the square of their length.
create or replace function pawl.send_repeated (
  p_domain_id integer, p_batch bigint, p_is_held boolean, p_ids uuid[], p_types text[], p_payloads jsonb[], p_priorities integer[],
  p_max_attempts integer[], p_reply_to text[], p_correlation_ids text[], p_order_keys text[], p_made bigint[])
  returns table (ord integer, command_id uuid, is_new boolean, status text, refusal text)
  language sql stable
as $$
  select w.ord, w.command_id, w.is_made and row_number() over (partition by w.command_id order by w.ord) = 1,
         case when w.id is not null then pawl.command_status(w.id) else coalesce(w.kept, 'BUSY') end, w.refusal
  from (
    select i.ord, i.command_id, i.id, i.kept, i.refusal, bool_or(i.is_made) over (partition by i.id) as is_made
    from (
      select u.ord::integer, u.command_id, c.id, k.status, false,
             case when coalesce(c.type, k.type) <> u.type then pawl.sent_otherwise('type', u.type, coalesce(c.type, k.type))
                  when k.duplicate_of is not null then format('unique_key is none, it was sent as a duplicate of command %s', k.duplicate_of)
                  when c.payload <> coalesce(u.payload, 'null') and not exists (
                         select from pawl.replaced_payload r where r.id = c.id and r.payload_hash = pawl.payload_hash(u.payload))
                       or k.payload_hash <> pawl.payload_hash(u.payload) then
                    'payload differs from what was sent first'
                  when c.priority <> coalesce(u.priority, 4) then
                    format('priority is %s, it was sent as %s', coalesce(u.priority, 4), c.priority)
                  when c.max_attempts <> coalesce(u.max_attempts, 3) then
                    format('max_attempts is %s, it was sent as %s', coalesce(u.max_attempts, 3), c.max_attempts)
                  when c.id is null then null -- of a deleted command no other field is known
                  when c.reply_to is distinct from u.reply_to then pawl.sent_otherwise('reply_to', u.reply_to, c.reply_to)
                  when c.correlation_id is distinct from u.correlation_id then
                    pawl.sent_otherwise('correlation_id', u.correlation_id, c.correlation_id)
                  when c.order_key is distinct from u.order_key then pawl.sent_otherwise('order_key', u.order_key, c.order_key)
                  when not p_is_held and c.batch_id is distinct from p_batch then 'batch_id differs from what was sent first'
             end
      from unnest(p_ids, p_types, p_payloads, p_priorities, p_max_attempts, p_reply_to, p_correlation_ids, p_order_keys)
        with ordinality u (command_id, type, payload, priority, max_attempts, reply_to, correlation_id, order_key, ord)
      left join pawl.command c on c.command_id = u.command_id and c.domain_id = p_domain_id
      left join pawl.kept_key k on c.id is null and k.command_id = u.command_id and k.domain_id = p_domain_id
      union all
      select null, null, m, null, true, null from unnest(p_made) m
    ) i (ord, command_id, id, kept, is_made, refusal)
  ) w
  where w.ord is not null
  order by w.ord
$$;

-- One row per item, in order. NULL arrays and NULL elements mean the default. p_delays_ms: from now.
-- status: of the command. BUSY, only with p_nowait: another transaction that has not ended sends the same id, creates the reply queue
-- or holds the batch; nothing was done.
-- p_fresh: the caller made the ids for this call. If all commands are new, as they are unless it is tried again, one row with the ord 0
-- says so. p_attached: texts for the module that reserves the domain, which checks, stores and compares them (app/attached.sql); null: none.
-- p_keyed: the id is that of a key, which counts in all domains (send_key.sql).
-- p_tokens and the arguments behind it: a worker of the caller offers free handlers (send_start.sql). number: of a command that has the lease with its
-- token, by this call or by an earlier try of it; payload: of that command; loaded: what its module reads for its worker.
-- p_unique_keys, p_unique_for, p_on_duplicates, duplicate: see unique.sql; such a call offers no handlers.
create or replace function pawl.send_items (
  p_nowait boolean, p_domain text, p_types text[], p_payloads jsonb[], p_command_ids uuid[], p_delays_ms bigint[],
  p_priorities integer[], p_max_attempts integer[], p_reply_to text[], p_correlation_ids text[], p_batch_id uuid, p_actor text,
  p_order_keys text[] default null, p_fresh boolean default false, p_attached text[] default null, p_keyed boolean[] default null,
  p_tokens bigint[] default null, p_worker text default null, p_lease_ms integer default null, p_worker_types text[] default null,
  p_after bigint[] default null, p_unique_keys text[] default null, p_unique_for text[] default null, p_on_duplicates text[] default null)
  returns table (
    ord integer, command_id uuid, is_new boolean, status text, refusal text, number bigint, payload jsonb, loaded jsonb, duplicate text)
  language plpgsql security definer set search_path = pawl, pg_temp
  set plan = ordered_cached
as $$
#variable_conflict use_column
declare
  v_now timestamptz;
  v_domain integer := pawl.domain_id(p_domain);
  v_count integer;
  v_bytes integer[];
  v_ids uuid[] := p_command_ids;
  v_is_made_here boolean := false; -- every id: no other command has it
  v_is_fresh boolean := coalesce(p_fresh and p_command_ids is not null, false);
  v_batch bigint;
  v_is_held boolean := false; -- the batch, by another transaction
  v_busy uuid[];
  v_made bigint[];
  v_tokens bigint[]; -- of those that may start
  v_creator text := case when p_reply_to is not null then pawl.reply_queue_creator(p_actor) end; -- of reply queues
begin
  v_count := pawl.send_check(p_types, p_payloads, p_command_ids, p_delays_ms, p_priorities, p_max_attempts, p_reply_to,
                             p_correlation_ids, p_order_keys, p_actor);
  perform pawl.send_right_check('domain', p_domain);
  if p_unique_keys is not null or p_unique_for is not null or p_on_duplicates is not null then
    perform pawl.unique_check(p_domain, v_count, p_unique_keys, p_unique_for, p_on_duplicates);
    return query
      select s.ord, s.command_id, s.is_new, s.status, s.refusal, null::bigint, null::jsonb, null::jsonb, s.duplicate
      from pawl.send_unique(p_nowait, p_domain, p_batch_id, p_actor, p_fresh, pawl.unique_items(
        p_nowait, p_domain, p_types, p_payloads, p_command_ids, p_delays_ms, p_priorities, p_max_attempts, p_reply_to, p_correlation_ids,
        p_order_keys, p_keyed, p_unique_keys, p_unique_for, p_on_duplicates)) s;
    return;
  end if;
  if p_actor is not null then -- pawl's own names too: `reply` is `LOGIN (reply)` where the login may not name operators
    p_actor := pawl.operator_name(p_actor);
  end if;
  v_bytes := pawl.payloads_bytes(p_payloads, p_nowait);
  if p_attached is not null then
    perform pawl.array_check('attached', p_attached, v_count, 'QU001'), pawl.attached_check(p_domain, p_attached);
  end if;
  if v_ids is null or array_position(v_ids, null) is not null then
    v_is_made_here := v_ids is null or array_remove(v_ids, null) = '{}';
    -- Not by subscripts: in an array with nulls each of them scans all elements before it.
    v_ids := array(select coalesce(u.id, pawl.uuid7())
                   from rows from (unnest(p_command_ids), generate_series(1, v_count)) u (id, n)
                   order by u.n);
  end if;
  if p_batch_id is not null or p_reply_to is not null then
    select o.batch, o.is_held, o.busy into v_batch, v_is_held, v_busy
    from pawl.send_open(p_nowait, v_domain, p_batch_id, p_command_ids, v_ids, p_reply_to, v_creator) o;
  end if;
  if p_keyed is not null then
    perform pawl.array_check('keyed', p_keyed, v_count, 'QU001');
    v_busy := nullif(coalesce(v_busy, '{}') || pawl.send_keys(p_nowait, p_domain, v_ids, p_keyed), '{}');
  end if;

  if p_tokens is not null then
    v_tokens := pawl.send_offer(v_domain, v_count, p_priorities::smallint[], p_tokens, p_worker, p_lease_ms, p_worker_types, p_after);
  end if;

  perform pawl.command_allocation_lock();
  v_now := pawl.now(); -- under the lock: see pawl.requeue_due
  if v_is_held then
    v_made := '{}';
  elsif v_is_made_here or not (p_nowait or v_is_fresh) then
    v_made := pawl.send_put(v_domain, v_batch, v_now, p_actor, v_ids, p_types, p_payloads, v_bytes, p_delays_ms, p_priorities::smallint[],
                            p_max_attempts::smallint[], p_reply_to, p_correlation_ids, p_order_keys, v_busy, v_is_made_here, v_tokens, p_worker, p_lease_ms);
  else
    v_made := pawl.send_put_tried(p_nowait, v_domain, v_batch, v_now, p_actor, v_ids, p_types, p_payloads, v_bytes, p_delays_ms,
                                  p_priorities::smallint[], p_max_attempts::smallint[], p_reply_to, p_correlation_ids, p_order_keys, v_busy, v_is_fresh,
                                  v_tokens, p_worker, p_lease_ms);
  end if;
  if p_command_ids is not null then
    v_made := pawl.send_unless_kept(v_domain, v_made);
  end if;
  perform pawl.attached_sent(p_domain, p_reply_to, v_made);
  if p_attached is not null then
    perform pawl.attached_write(v_made, v_ids, p_attached);
  end if;

  if cardinality(v_made) = v_count and v_is_fresh and p_tokens is null then
    return query select 0, null::uuid, true, 'PENDING', null::text, null::bigint, null::jsonb, null::jsonb, null::text;
  elsif cardinality(v_made) = v_count and p_tokens is null then
    return query select n::integer, v_ids[n], true, 'PENDING', null::text, null::bigint, null::jsonb, null::jsonb, null::text from generate_series(1, v_count) n order by n;
  elsif cardinality(v_made) = v_count then
    return query
      select u.n::integer, u.id, true, 'PENDING', null::text, t.number, t.payload,
             case when t.number is not null then pawl.attached_loaded(p_domain, t.number, u.token) end, null::text
      from unnest(v_ids, p_tokens) with ordinality u (id, token, n)
      left join lateral pawl.send_started(v_domain, u.id, u.token) t on true
      order by u.n;
  else -- a new snapshot, in which the first senders have committed
    perform pawl.replay_barrier();
    return query -- both lists are in the order of the items
      select r.ord, r.command_id, r.is_new, case when e.domain is null then r.status else 'UNKNOWN' end,
             case when e.domain is not null then pawl.sent_otherwise('domain', regexp_replace(p_domain, '^process:', ''), regexp_replace(e.domain, '^process:', ''))
                  when r.refusal is null then pawl.attached_difference(p_domain, v_domain, r.command_id, r.attached) else r.refusal end,
             t.number, t.payload, case when t.number is not null then pawl.attached_loaded(p_domain, t.number, r.token) end, null::text
      from rows from (
        pawl.send_repeated(v_domain, v_batch, v_is_held, v_ids, p_types, p_payloads, p_priorities, p_max_attempts,
                           p_reply_to, p_correlation_ids, p_order_keys, v_made),
        unnest(p_attached), unnest(p_keyed), unnest(p_tokens)) r (ord, command_id, is_new, status, refusal, attached, keyed, token)
      left join lateral (select pawl.key_elsewhere(p_domain, r.command_id) as domain where r.keyed and r.status = 'BUSY') e on true
      left join lateral pawl.send_started(v_domain, r.command_id, r.token) t on true;
  end if;
end
$$;

-- The same as send_items, waiting for concurrent sends. p_keys: texts in place of ids, as of the function below.
create or replace function pawl.send (
  p_domain text,
  p_types text[],
  p_payloads jsonb[],
  p_command_ids uuid[] default null,
  p_delays_ms bigint[] default null,
  p_priorities integer[] default null,
  p_max_attempts integer[] default null,
  p_reply_to text[] default null,
  p_correlation_ids text[] default null,
  p_batch_id uuid default null,
  p_actor text default null,
  p_order_keys text[] default null,
  p_keys text[] default null,
  p_unique_keys text[] default null,
  p_unique_for text[] default null,
  p_on_duplicates text[] default null)
  returns table (ord integer, command_id uuid, is_new boolean, status text, refusal text, duplicate text)
  language sql security definer set search_path = pawl, pg_temp
as $$
  select s.ord, s.command_id, s.is_new, s.status, s.refusal, s.duplicate
  from pawl.send_items(false, p_domain, p_types, p_payloads, pawl.keys_or_ids(p_keys, p_command_ids, 'command_ids'), p_delays_ms, p_priorities,
    p_max_attempts, p_reply_to, p_correlation_ids, p_batch_id, p_actor, p_order_keys, p_keyed => pawl.keys_given(p_keys), p_unique_keys => p_unique_keys,
    p_unique_for => p_unique_for, p_on_duplicates => p_on_duplicates) s
$$;

-- One command. Returns its id; a refusal is raised (QU002), because no other item depends on this call. p_key: a text in
-- place of the id, which counts in all domains (send_key.sql). p_unique_key: while another command has it, no command is sent, and the id returned is that
-- one's (unique.sql); p_on_duplicate: keep, replace or move.
create or replace function pawl.send (
  p_domain text,
  p_type text,
  p_payload jsonb default '{}',
  p_command_id uuid default null,
  p_delay interval default null,
  p_priority integer default null,
  p_max_attempts integer default null,
  p_reply_to text default null,
  p_correlation_id text default null,
  p_batch uuid default null,
  p_order_key text default null,
  p_key text default null,
  p_unique_key text default null,
  p_unique_for text default null,
  p_on_duplicate text default null)
  returns uuid
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
declare
  v_sent record;
begin
  select * into strict v_sent
  from pawl.send_items(false, p_domain, array[p_type], array[p_payload], array[pawl.key_or_id(p_key, p_command_id, 'command_id')],
    case when p_delay is not null then array[(extract(epoch from p_delay) * 1000)::bigint] end,
    array[p_priority], array[p_max_attempts],
    case when p_reply_to is not null then array[p_reply_to] end,
    case when p_correlation_id is not null then array[p_correlation_id] end, p_batch, null,
    case when p_order_key is not null then array[p_order_key] end,
    p_keyed => case when p_key is not null then array[true] end,
    p_unique_keys => case when p_unique_key is not null then array[p_unique_key] end,
    p_unique_for => case when p_unique_for is not null then array[p_unique_for] end,
    p_on_duplicates => case when p_on_duplicate is not null then array[p_on_duplicate] end);
  if v_sent.refusal is not null then
    raise exception '%', pawl.attached_refusal(p_domain, v_sent.command_id, v_sent.refusal) using errcode = 'QU002';
  end if;
  return v_sent.command_id;
end
$$;

-- The same from texts. A literal has no type, and between a payload and an array of payloads PostgreSQL would not choose; where
-- a text is possible it takes that. So pawl.send('shop', 'charge', '{"order": 7}') is this one, and so are a driver's parameters
-- that have no type, or that of a text.
create or replace function pawl.send (
  p_domain text,
  p_type text,
  p_payload text,
  p_command_id text default null,
  p_delay text default null,
  p_priority text default null,
  p_max_attempts text default null,
  p_reply_to text default null,
  p_correlation_id text default null,
  p_batch text default null,
  p_order_key text default null,
  p_key text default null,
  p_unique_key text default null,
  p_unique_for text default null,
  p_on_duplicate text default null)
  returns uuid
  language sql
as $$
  select pawl.send(p_domain, p_type, p_payload::jsonb, p_command_id::uuid, p_delay::interval, p_priority::integer,
    p_max_attempts::integer, p_reply_to, p_correlation_id, p_batch::uuid, p_order_key, p_key,
    p_unique_key, p_unique_for, p_on_duplicate)
$$;
