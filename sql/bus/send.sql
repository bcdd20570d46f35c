-- send.sql - put commands in line, in the caller's own transaction.
--
-- Invariant: (command id, domain) is one command for ever. A second send of the same changes nothing and tells how the
-- first one stands; with another type or payload it is a refusal that names the difference (verdict QU002).
-- Lock order: none but the unique key's: a twin waits until the first sender has committed or rolled back.
-- Errors: QU001 arguments out of range, arrays of different length. QU003 the batch is closed, QU004 unknown.

-- What a twin is told: the first one's state. UNKNOWN: there is no such command.
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

-- One row per item, in order. NULL arrays and NULL elements mean the default. p_delays_ms: from now.
create or replace function pawl.send (
  p_domain text,
  p_types text[],
  p_payloads jsonb[],
  p_command_ids uuid[] default null,
  p_delays_ms bigint[] default null,
  p_priorities smallint[] default null,
  p_max_attempts smallint[] default null,
  p_reply_to text[] default null,
  p_correlation_ids text[] default null,
  p_batch_id uuid default null,
  p_actor text default null)
  returns table (ord integer, command_id uuid, is_new boolean, status text, refusal text)
  language plpgsql security definer set search_path = pawl, pg_temp
  set jit = off set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off
as $$
#variable_conflict use_column
declare
  v_now timestamptz := pawl.now();
  v_count integer := coalesce(cardinality(p_types), 0);
  v_domain integer := pawl.domain_id(p_domain);
  v_batch bigint;
  v_ids uuid[] := p_command_ids;
  v_made bigint[];
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
          pawl.array_check('correlation_ids', p_correlation_ids, v_count, 'QU001', true);
  if exists (select from unnest(p_types) t where t is null or t !~ '^[A-Za-z0-9][A-Za-z0-9_.:-]{0,99}$') then
    raise exception 'type must be 1 to 100 letters, digits, "_", ".", ":" or "-", beginning with a letter or digit'
      using errcode = 'QU001';
  end if;
  if exists (select from unnest(p_priorities) p where p not between 0 and 9) then
    raise exception 'priority must be from 0 to 9' using errcode = 'QU001';
  end if;
  if exists (select from unnest(p_max_attempts) m where m not between 1 and 1000) then
    raise exception 'max_attempts must be from 1 to 1000' using errcode = 'QU001';
  end if;
  if exists (select from unnest(p_delays_ms) d where d not between 0 and 315360000000) then
    raise exception 'delay must be from 0 to 315360000000 ms' using errcode = 'QU001';
  end if;
  v_batch := pawl.batch_open(p_batch_id, v_domain, p_command_ids);
  if p_reply_to is not null then
    perform pawl.reply_queues(p_reply_to);
  end if;

  perform pawl.drawing(2);
  if v_ids is null or array_position(v_ids, null) is not null then
    v_ids := array(select coalesce(p_command_ids[n], pawl.uuid7()) from generate_series(1, v_count) n order by n);
  end if;
  with item as (
    select u.ord::integer, u.command_id, u.type, coalesce(u.payload, 'null') as payload,
           coalesce(u.priority, 4)::smallint as priority, coalesce(u.max_attempts, 3)::smallint as max_attempts,
           coalesce(u.delay_ms, 0) as delay_ms, u.reply_to, u.correlation_id
    from unnest(v_ids, p_types, p_payloads, p_priorities, p_max_attempts, p_delays_ms, p_reply_to, p_correlation_ids)
      with ordinality u (command_id, type, payload, priority, max_attempts, delay_ms, reply_to, correlation_id, ord)
  ), made as (
    insert into pawl.command (id, domain_id, command_id, type, payload, priority, max_attempts, reply_to, correlation_id,
                              batch_id, created_at)
    select nextval('pawl.command_seq'), v_domain, i.command_id, i.type, i.payload, i.priority, i.max_attempts, i.reply_to,
           i.correlation_id, v_batch, v_now
    from item i
    on conflict on constraint command_key do nothing
    returning id, command_id, priority, max_attempts, reply_to is not null or batch_id is not null as extras
  ), waiting as (
    insert into pawl.delayed (id, due, domain_id, priority, attempt, max_attempts, extras)
    select distinct on (m.id) m.id, v_now + i.delay_ms * interval '1 ms', v_domain, m.priority, 0, m.max_attempts, m.extras
    from made m join item i using (command_id)
    where p_delays_ms is not null and i.delay_ms > 0
    order by m.id, i.ord
    returning id
  ), lined as (
    insert into pawl.ready (domain_id, priority, pos, id, attempt, max_attempts, extras)
    select v_domain, m.priority, m.id, m.id, 0, m.max_attempts, m.extras
    from made m
    where p_delays_ms is null or not exists (select from waiting w where w.id = m.id)
  ), noted as (
    insert into pawl.audit (id, at, domain_id, attempt, event, command_id, actor)
    select m.id, v_now, v_domain, 0, 'SENT', m.command_id, p_actor
    from made m
  )
  select array_agg(m.id) into v_made from made m;

  if cardinality(v_made) = v_count then
    return query select n::integer, v_ids[n], true, 'PENDING', null::text from generate_series(1, v_count) n order by n;
    return;
  end if;
  -- Some were there already: a new snapshot, in which their first senders have committed.
  perform pawl.replay_barrier();
  return query
    select u.ord::integer, u.command_id,
           c.id = any (v_made) and row_number() over (partition by u.command_id order by u.ord) = 1,
           pawl.command_status(c.id),
           case when c.type <> u.type then format('type is "%s", it was sent as "%s"', u.type, c.type)
                when c.payload <> coalesce(u.payload, 'null') then 'payload differs from what was sent first'
           end
    from unnest(v_ids, p_types, p_payloads) with ordinality u (command_id, type, payload, ord)
    join pawl.command c on c.command_id = u.command_id and c.domain_id = v_domain
    order by u.ord;
end
$$;

-- One command. Returns its id; a refusal is raised (QU002), because there is no neighbour to spare.
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
  p_batch uuid default null)
  returns uuid
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
declare
  v_sent record;
begin
  select * into strict v_sent
  from pawl.send(p_domain, array[p_type], array[p_payload], array[p_command_id],
    case when p_delay is not null then array[(extract(epoch from p_delay) * 1000)::bigint] end,
    array[p_priority::smallint], array[p_max_attempts::smallint],
    case when p_reply_to is not null then array[p_reply_to] end,
    case when p_correlation_id is not null then array[p_correlation_id] end, p_batch);
  if v_sent.refusal is not null then
    raise exception 'command % exists already: %', v_sent.command_id, v_sent.refusal using errcode = 'QU002';
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
  p_batch text default null)
  returns uuid
  language sql
as $$
  select pawl.send(p_domain, p_type, p_payload::jsonb, p_command_id::uuid, p_delay::interval, p_priority::integer,
    p_max_attempts::integer, p_reply_to, p_correlation_id, p_batch::uuid)
$$;

-- Tell the workers of a domain to look now. pawl.send does not: PostgreSQL lets transactions that notify commit one at a time,
-- all over the server. So call it after the commit, in a transaction of its own; losing it costs 2.5 s at most.
create or replace function pawl.wake (p_domain text)
  returns void
  language sql
as $$
  select pg_notify('pawl_work', p_domain)
$$;
