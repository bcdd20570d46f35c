-- load.sql - read processes: what an activation continues from.

-- The number of a process; null: unknown. QU005: several domains have it, and none was named.
create or replace function pawl.process_number (p_process_id uuid, p_domain text default null)
  returns bigint
  language plpgsql stable
  set plan = keyed_cached
as $$
declare
  v_ids bigint[];
  v_domains text;
begin
  select array_agg(c.id), string_agg(c.name, ', ' order by c.name) into v_ids, v_domains
  from (
    select c.id, substr(n.name, 9) as name
    from pawl.command c
    cross join lateral (select n.name from pawl.domain_name n where n.id = c.domain_id limit 1) n
    where c.command_id = p_process_id and n.name like 'process:%' and (p_domain is null or n.name = 'process:' || p_domain)) c;
  if cardinality(v_ids) > 1 then
    raise exception 'process % is in several domains: %; name one of them', p_process_id, v_domains using errcode = 'QU005';
  end if;
  return v_ids[1];
end
$$;

-- The domains of the bus in which processes are: that of the domain given, or else the one that has the process; null: several have it.
create or replace function pawl.process_domains (p_process_ids uuid[], p_domains text[])
  returns text[]
  language plpgsql stable security definer set search_path = pawl, pg_temp
  set plan = keyed_cached
as $$
begin
  return array(
    select coalesce(
      'process:' || u.domain,
      (select case when count(*) = 0 then 'process:' -- none has it
                   when count(*) = 1 then min(n.name) end -- null: several have it, and callers report it as ambiguous
       from pawl.command c
       cross join lateral (select n.name from pawl.domain_name n where n.id = c.domain_id limit 1) n
       where c.command_id = u.id and n.name like 'process:%'))
    from unnest(p_process_ids, p_domains) with ordinality u (id, domain, ord)
    order by u.ord);
end
$$;

-- The records of a process whose commands or children have not ended, or have completed and their reply has not come.
create or replace function pawl.process_open (p_id bigint)
  returns jsonb
  language plpgsql stable
  set plan = keyed_cached
as $$
begin
  return (
    select coalesce(jsonb_agg(distinct jsonb_build_object('step', s.step, 'item', s.item, 'undo', s.undo, 'aside', s.aside)), '[]')
    from pawl.process_sent s
    cross join lateral (select c.command_id::text as key from pawl.command c where c.id = s.sent_id limit 1) c
    left join lateral (select o.status from pawl.outcome o where o.id = s.sent_id limit 1) o on true
    where s.id = p_id and (o.status is null or o.status = 'COMPLETED' and not exists (
      select from pawl.process_response r where r.id = p_id and r.kind = 'reply' and r.name = s.step and r.item = s.item and r.key = c.key)));
end
$$;

-- A row per process, by number, for those that hold its lease: of one whose token is not that of the lease, there is no row, because state and secret are
-- for the worker that runs it. deadline_action: null if there is no deadline. steps: successful and failed attempts in the order in which they were recorded. responses: in the order
-- of arrival, without the replies that a step has recorded as its result, and without the payloads of replies that a retry has set
-- aside: {"total": of all, "items": [...], "open": of a process that is being compensated, the steps whose commands or children have not
-- ended, or have completed and their reply has not come, "sent": sorted, the ids of those that have not ended; null: none}. A result that is
-- too large to be read, which an earlier version has stored, is left out, so that the process can be compensated. p_bytes_max: no row follows one
-- with which the sizes of those returned reach this sum, and that one is_last; 0: no limit. A state that is compressed counts as its text, because
-- nothing else says how large it is. In PL/pgSQL, because a function in SQL is planned at each call. Volatile, so that it sees the leases that
-- pawl.claim has made in the same statement.
create or replace function pawl.process_load (p_ids bigint[], p_tokens bigint[], p_bytes_max bigint)
  returns table (id bigint, definition_id integer, phase text, state jsonb, version bigint, deadline timestamptz, retried_at timestamptz,
                 secret uuid, steps jsonb, responses jsonb, is_last boolean, deadline_action text, reason text, life integer, input jsonb)
  language plpgsql security definer set search_path = pawl, pg_temp
  set plan = keyed_cached
as $$
#variable_conflict use_column
declare
  v_bytes bigint;
  v_sum bigint := 0;
begin
  if p_ids = '{}' and p_tokens = '{}' then -- of a claim that has found nothing
    return;
  end if;
  perform pawl.array_check('tokens', p_tokens, cardinality(p_ids), 'QP001');
  for id, definition_id, phase, state, version, deadline, retried_at, secret, steps, responses, deadline_action, reason, life, input, v_bytes in
    select p.id, p.definition_id, p.phase, p.state, p.version, p.deadline, p.retried_at, p.secret, s.steps, r.responses,
           case when p.deadline is not null then coalesce(p.deadline_action, 'troubleshoot') end, p.reason, p.life, p.input,
           case when pg_column_compression(p.state) is null then pg_column_size(p.state) else octet_length(p.state::text) end
             + case when pg_column_compression(p.input) is null then coalesce(pg_column_size(p.input), 0) else octet_length(p.input::text) end
             + coalesce(pg_column_size(s.steps), 0) + coalesce(pg_column_size(r.responses), 0)
    from unnest(p_ids, p_tokens) u (id, token)
    cross join lateral (select from pawl.lease l where l.id = u.id and l.token = u.token limit 1) l
    cross join lateral (select * from pawl.process p where p.id = u.id limit 1) p
    left join lateral (
      select jsonb_agg(jsonb_strip_nulls(jsonb_build_object(
               'step', s.step, 'item', nullif(s.item, '{}'), 'undo', nullif(s.undo, false), 'kind', nullif(s.kind, 'step'), 'aside', nullif(s.aside, 0),
               'attempt', s.attempt, 'verdict', s.verdict, 'retry_us', pawl.micros(s.retry_at), 'response', s.response, 'taken', s.taken,
               'call', s.call, 'call_kind', s.call_kind,
               'input_hash', s.input_hash, 'error', s.error, 'is_reset', s.is_reset, 'ended_us', pawl.micros(s.ended_at)))
               || case when s.result is null then '{}' else jsonb_build_object('result', pawl.json_shown(s.result)) end order by s.number) as steps
      from pawl.process_step s where s.id = u.id) s on true
    left join lateral (
      select jsonb_build_object(
               'total', count(*),
               'items', coalesce(
                 jsonb_agg(jsonb_build_object('kind', r.kind, 'name', r.name, 'key', r.key, 'payload', case when not r.is_aside then r.payload end)
                             || case when r.item = '{}' and not r.undo and not r.is_aside then '{}'
                                     else jsonb_build_object('item', r.item, 'undo', r.undo, 'aside', r.aside, 'is_aside', r.is_aside) end
                             || case when r.to_step is null then '{}' else jsonb_build_object('to_step', r.to_step, 'to_item', r.to_item) end
                           order by r.number) filter (where n.is_needed), '[]'),
               'open', case when p.phase = 'compensating' then pawl.process_open(p.id) end,
               'sent', case when count(*) > 0 or p.wait is not null then ( -- not in its first activation
                 select jsonb_agg(c.command_id order by c.command_id)
                 from pawl.process_sent s
                 cross join lateral (select c.command_id from pawl.command c where c.id = s.sent_id limit 1) c
                 where s.id = p.id and not exists (select from pawl.outcome o where o.id = s.sent_id)) end) as responses
      from pawl.process_response r
      cross join lateral (
        select r.kind <> 'reply' or r.is_aside or not exists (
          select from pawl.process_step s
          where s.id = r.id and s.step = r.name and s.item = r.item and s.undo = r.undo and s.kind = 'step' and s.aside = r.aside and s.error is null) as is_needed) n
      where r.id = u.id) r on true
    order by p.id
  loop
    v_sum := v_sum + v_bytes;
    is_last := p_bytes_max > 0 and v_sum >= p_bytes_max;
    return next;
    exit when is_last;
  end loop;
end
$$;

-- The same of one process, as an object with the columns of the statement process_load; null: its lease has another token, or it is large.
create or replace function pawl.process_loaded (p_id bigint, p_token bigint)
  returns jsonb
  language plpgsql
as $$
declare
  c_bytes_max constant bigint := 4096;
begin
  return (
    select jsonb_build_object(
             'id', l.id, 'now_us', pawl.micros(pawl.now()), 'definition_id', coalesce(l.definition_id, 0), 'phase', l.phase, 'state', l.state,
             'version', l.version, 'deadline_us', pawl.micros(l.deadline), 'retried_us', pawl.micros(l.retried_at), 'secret', l.secret,
             'response_total', l.responses -> 'total', 'steps', l.steps, 'responses', l.responses -> 'items', 'open', l.responses -> 'open',
             'sent', l.responses -> 'sent', 'deadline_action', l.deadline_action, 'reason', l.reason, 'life', l.life, 'input', l.input)
    from pawl.process_load(array[p_id], array[p_token], c_bytes_max) l
    where not l.is_last);
end
$$;

-- Of processes, in the order of the ids, which may be repeated: how many records each has, counted up to p_max, whether it has this record, whether it is
-- being compensated, and the value that ids of what it sends are derived from; that one only for those that hold its lease.
create or replace function pawl.process_counted (p_ids bigint[], p_tokens bigint[], p_records jsonb[], p_max integer)
  returns table (secret uuid, value bigint, is_known boolean, is_compensating boolean, life integer)
  language plpgsql stable security definer set search_path = pawl, pg_temp
  set plan = ordered_cached
as $$
begin
  perform pawl.array_check('tokens', p_tokens, cardinality(p_ids), 'QP001');
  if (p_max >= 0) is not true then
    raise exception 'max must be from 0, got %', coalesce(p_max::text, 'null') using errcode = 'QP001';
  end if;
  if not pawl.records_are_valid(p_records) then
    raise exception 'records must be objects with a step, and an attempt from 0 to 32767' using errcode = 'QP001';
  end if;
  return query
    with counted as materialized (
      select d.id, p.secret, p.life, p.phase <> 'forward' as is_compensating,
             (select count(*) from (select from pawl.process_step s where s.id = d.id limit p_max) s) as value
      from (select distinct u.id from unnest(p_ids) u (id)) d
      left join lateral (select p.secret, p.life, p.phase from pawl.process p where p.id = d.id limit 1) p on true
    )
    select case when exists (select from pawl.lease l where l.id = u.id and l.token = u.token) then c.secret end, c.value,
           c.value >= p_max / 2 and exists ( -- only there it makes a difference
             select from pawl.record_read(u.record) r
             cross join lateral ( -- the limit keeps all of the key in the lookup: a plan made while the table is small would read the process's records
               select from pawl.process_step s
               where s.id = u.id and s.step = r.step and s.item = r.item and s.undo = r.undo and s.kind = r.kind and s.aside = r.aside
                 and s.attempt = r.attempt limit 1) s
             where u.record is not null),
           c.is_compensating is true, coalesce(c.life, 1)
    from unnest(p_ids, p_tokens, p_records) with ordinality u (id, token, record, ord)
    join counted c on c.id = u.id
    order by u.ord;
end
$$;
