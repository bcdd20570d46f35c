-- show.sql - reading: one command with its events, lists, counts.
-- Times are microseconds since 1970. Nothing is locked.
-- Errors: QU001 an argument is out of range. QU005 several domains have a command of this id, and none was named.

-- Why the last attempt failed, of a command that has not ended; the tables that it moves through do not have it.
create or replace function pawl.command_error (p_id bigint)
  returns text
  language sql stable
as $$
  select coalesce(a.details ->> 'error', a.details ->> 'reason')
  from pawl.event a
  where a.id = p_id and a.event in ('RETRY_SCHEDULED', 'SNOOZED', 'MOVED_TO_TSQ')
  order by a.at desc, a.attempt desc
  limit 1
$$;

-- How long a command has been queued while no worker has a command of its domain; null: it is not queued, was queued just now, or a worker has one.
-- A worker that asks for work and finds none leaves no trace, so this is what can be known.
create or replace function pawl.queued_unclaimed (p_id bigint)
  returns interval
  language plpgsql stable
  set plan = keyed_cached
as $$
declare
  c_usual constant interval := interval '10 s'; -- workers poll more often
  v_domain_id integer;
  v_since timestamptz;
begin
  select c.domain_id, pawl.queued_since(r.id, r.pos) into v_domain_id, v_since
  from pawl.command c
  cross join lateral (
    select r.id, r.pos from pawl.ready r where r.domain_id = c.domain_id and r.priority = c.priority and r.pos = c.id
    union all
    select r.id, r.pos from pawl.ready r where r.id = c.id and r.pos <> r.id) r
  where c.id = p_id;
  if (v_since < pawl.now() - c_usual) is not true or exists (
       select from pawl.lease l where l.domain_id = v_domain_id and l.until > pawl.now()) then
    return null;
  end if;
  return pawl.now() - v_since;
end
$$;

-- Which pause or limit holds back a command, as a sentence; null: none.
create or replace function pawl.command_gate_note (p_id bigint, p_domain text)
  returns text
  language plpgsql stable
  set plan = keyed_cached
as $$
declare
  v_command record;
  v_pause pawl.pause;
begin
  select c.domain_id, c.type, r.line into v_command
  from pawl.command c
  cross join lateral (
    select r.line from pawl.ready r where r.domain_id = c.domain_id and r.priority = c.priority and r.pos = c.id
    union all
    select r.line from pawl.ready r where r.id = c.id and r.pos <> r.id) r
  where c.id = p_id;
  if not found then
    return null;
  end if;
  select p.* into v_pause from pawl.pause p
  where p.domain_id = v_command.domain_id and p.type in ('*', v_command.type) order by p.type <> '*' limit 1;
  if found then
    return format('%s is paused by %s since %s%s',
      case when v_pause.type = '*' then format('domain "%s"', p_domain) else format('type "%s"', v_pause.type) end,
      v_pause.operator, pawl.iso(v_pause.at), ': ' || v_pause.reason);
  end if;
  return (
    select format('a limit of %s holds it back', case when l.type = '*' then format('domain "%s"', p_domain) else format('type "%s"', l.type) end)
    from pawl.gate_limit l
    where v_command.line is not null and l.domain_id = v_command.domain_id and l.type in ('*', v_command.type)
    order by l.type <> '*' limit 1);
end
$$;

-- Why no worker takes a command, as a sentence; null: see pawl.queued_unclaimed.
create or replace function pawl.command_queued_note (p_id bigint, p_domain text)
  returns text
  language sql stable
as $$
  select n.note from (select pawl.command_gate_note(p_id, p_domain) as note) n where n.note is not null
  union all
  select format('it has been queued for %s s, and no worker has a command of domain "%s"', extract(epoch from pawl.queued_unclaimed(p_id))::bigint, p_domain)
  where pawl.queued_unclaimed(p_id) is not null
  limit 1
$$;

-- The first of these commands, up to the one with which their payloads and results reach p_bytes.
-- Plan: one index lookup per number in each table.
create or replace function pawl.commands_fit (p_ids bigint[], p_bytes bigint)
  returns bigint[]
  language plpgsql stable security definer set search_path = pawl, pg_temp
  set plan = keyed_cached
as $$
begin
  perform pawl.array_check('ids', p_ids, cardinality(p_ids), 'QU001');
  return array(
    select f.id
    from (
      select u.id, u.ord, sum(coalesce(c.payload_bytes, 1000) + case when pg_column_size(o.result) > 1000 then octet_length(o.result::text) else 1000 end)
        over (order by u.ord rows between unbounded preceding and 1 preceding) as before
      from unnest(p_ids) with ordinality u (id, ord)
      left join pawl.command c on c.id = u.id
      left join pawl.outcome o on o.id = u.id
    ) f
    where coalesce(f.before, 0) <= p_bytes
    order by f.ord);
end
$$;

-- All there is to know about commands, by number, each as one JSON object. Of many in one call each takes a tenth of what it takes alone: the server
-- plans the functions below once for each call.
create or replace function pawl.commands_show (p_ids bigint[])
  returns table (id bigint, value json)
  language sql stable security definer set search_path = pawl, pg_temp
  set plan = keyed
as $$
  select c.id, json_build_object(
    'command_id', c.command_id,
    'domain', d.name,
    'type', c.type,
    'status', pawl.command_status(c.id),
    'attempts', coalesce(o.attempts, l.attempt, w.attempt, t.attempt, r.attempt, 0),
    'max_attempts', c.max_attempts,
    'priority', c.priority,
    'payload', pawl.json_shown(c.payload),
    'result', pawl.json_shown(o.result),
    'error', case when o.id is null then pawl.command_error(c.id) else o.error end,
    'reply_to', c.reply_to,
    'reply_step', pawl.reserved_target_step(c.reply_to),
    'reply_process_id', (select q.command_id from pawl.command q where q.id = pawl.reserved_target_id(c.reply_to)),
    'correlation_id', c.correlation_id,
    'batch_id', b.batch_id,
    'order_key', c.order_key,
    'unique', (select json_build_object('key', k.key, 'scope', k.scope, 'until', pawl.iso(k.until)) from pawl.unique_key k where k.id = c.id),
    'waits_for', case when c.order_key is not null then pawl.order_waits_for(c.domain_id, c.order_key, c.id) end,
    'worker_note', pawl.command_queued_note(c.id, d.name),
    'created_at', pawl.iso(c.created_at),
    'due_at', pawl.iso(coalesce(w.due, case when c.due_at > pawl.now() and o.id is null then c.due_at end)),
    'lease_until', pawl.iso(l.until),
    'progress', pawl.progress_get(c.id),
    'ended_at', pawl.iso(o.ended_at),
    'audit', coalesce((
      select json_agg(json_build_object('event', a.event, 'at', pawl.iso(a.at), 'attempt', a.attempt, 'actor', a.actor,
                        'details', pawl.json_shown(a.details)) order by a.at, a.step, a.place)
      from pawl.audit a where a.id = c.id), '[]'))
  from pawl.command c
  cross join lateral (select n.name from pawl.domain_name n where n.id = c.domain_id limit 1) d
  left join pawl.outcome o on o.id = c.id
  left join pawl.lease l on l.id = c.id
  left join pawl.delayed w on w.id = c.id
  left join pawl.tsq t on t.id = c.id
  left join lateral (select r.attempt from pawl.ready r where r.id = c.id and r.pos <> r.id limit 1) r on true
  left join pawl.batch b on b.id = c.batch_id
  where c.id = any (p_ids)
$$;

-- One of them; NULL: unknown. A NULL domain matches any: QU005 when several have this id.
create or replace function pawl.command_show (p_command_id uuid, p_domain text)
  returns json
  language sql stable security definer set search_path = pawl, pg_temp
as $$
  select s.value from pawl.commands_show(array[pawl.command_number(p_command_id, p_domain)]) s
$$;

create or replace function pawl.command_show (p_command_id uuid)
  returns json
  language sql stable security definer set search_path = pawl, pg_temp
as $$
  select pawl.command_show(p_command_id, null)
$$;

-- Listings read from the newest command down, and a filter that matches few of many commands would read them all. So the functions
-- below read at most p_rows rows (null: all) of what they list, and return, newest first: the commands that match (hit), and the last
-- row read when p_rows ended the reading (is_last), whether it matches or not. A listing continues below that id.
--
-- A row's type is a lookup by key, as a scalar subquery: an `exists` may be planned as a hash of all commands.

-- Raises for a page of less than nothing.
create or replace function pawl.page_check (p_limit integer, p_rows integer)
  returns void
  language plpgsql immutable
as $$
begin
  if p_limit < 0 or p_rows < 0 then
    raise exception 'limit and rows must not be negative, got % and %', p_limit, p_rows using errcode = 'QU001';
  end if;
end
$$;

-- Since when a command has been queued at this position. One that was never delayed or claimed is queued since it was sent, and so is one that a pause or a
-- limit holds back, because its position is that of its line. Of others the time follows from
-- the first command that was sent after their position was allocated, so they may have been queued for longer; if there is none, from their last retry.
create or replace function pawl.queued_since (p_id bigint, p_pos bigint)
  returns timestamptz
  language plpgsql stable set search_path = pawl, pg_temp
  set plan = keyed_cached
as $$
begin
  if p_pos = p_id
     or exists (select from pawl.ready r where r.id = p_id and r.pos <> r.id and r.pos = p_pos and r.line is not null) then
    return (select c.created_at from pawl.command c where c.id = p_id);
  end if;
  return coalesce(
    (select c.created_at from pawl.command c where c.id > p_pos order by c.id limit 1),
    (select e.at + coalesce((e.details ->> 'delay_ms')::bigint, 0) * interval '1 ms'
     from pawl.event e where e.id = p_id and e.event in ('RETRY_SCHEDULED', 'SNOOZED') order by e.at desc limit 1),
    pawl.now());
end
$$;

-- The first row of pawl.ready of each domain and priority from p_first to p_last, which are domains.
-- Plan: one step per domain and priority that has work, by index.
create or replace function pawl.ready_heads (p_first integer default -2147483648, p_last integer default 2147483647)
  returns table (domain_id integer, priority smallint, pos bigint, id bigint)
  language plpgsql stable set search_path = pawl, pg_temp
  set plan = keyed_cached
  rows 10
as $$
#variable_conflict use_column
begin
  return query
    with recursive head as (
      (select r.domain_id, r.priority, r.pos, r.id
       from pawl.ready r
       where r.domain_id between p_first and p_last
       order by r.domain_id, r.priority, r.pos
       limit 1)
      union all
      select n.domain_id, n.priority, n.pos, n.id
      from head h,
      lateral (
        select r.domain_id, r.priority, r.pos, r.id
        from pawl.ready r
        where (r.domain_id, r.priority) > (h.domain_id, h.priority) and r.domain_id <= p_last
        order by r.domain_id, r.priority, r.pos
        limit 1
      ) n
    )
    select h.domain_id, h.priority, h.pos, h.id from head h;
end
$$;

-- Where queued and delayed commands are, each kind in the order of an index that has their ids: queued, of a priority of a domain, and never
-- requeued, so that position and id are the same; requeued, of all domains; delayed, of a domain or (null) of all; parked, of a domain.
-- Plan: one step per domain and priority, by index.
create or replace function pawl.pending_sources (p_domain_id integer)
  returns table (kind text, domain_id integer, priority smallint)
  language plpgsql stable set search_path = pawl, pg_temp
  set plan = keyed_cached
  rows 10
as $$
#variable_conflict use_column
declare
  v_first integer := coalesce(p_domain_id, -2147483648);
  v_last integer := coalesce(p_domain_id, 2147483647);
begin
  return query
    with recursive parking as (
      (select p.domain_id from pawl.parked p where p.domain_id between v_first and v_last order by p.domain_id, p.id limit 1)
      union all
      select n.domain_id
      from parking k,
      lateral (
        select p.domain_id from pawl.parked p
        where p.domain_id > k.domain_id and p.domain_id <= v_last
        order by p.domain_id, p.id
        limit 1
      ) n
    )
    select 'queued', h.domain_id, h.priority from pawl.ready_heads(v_first, v_last) h
    union all
    select 'parked', k.domain_id, null from parking k
    union all
    values ('requeued', p_domain_id, null::smallint), ('delayed', p_domain_id, null);
end
$$;

-- The ids of queued and delayed commands below p_before. Each source has its share of p_rows, at least 1000; below the highest row at which
-- one of them stopped nothing is returned.
-- Plan: p_limit rows of each source, by index. With p_type, rows of other types are passed over.
create or replace function pawl.pending_ids (
  p_domain_id integer, p_type text, p_before bigint, p_limit integer, p_rows integer,
  p_filter pawl.command_filter default null, p_after bigint default -9223372036854775808)
  returns table (id bigint, hit boolean, is_last boolean)
  language plpgsql stable set search_path = pawl, pg_temp
  set plan = keyed_cached
as $$
#variable_conflict use_column
declare
  v_rows bigint; -- of each source
begin
  perform pawl.page_check(p_limit, p_rows);
  if p_rows is not null then
    v_rows := greatest(1000, p_rows / (select count(*) from pawl.pending_sources(p_domain_id)));
  end if;
  return query
    with found as (
      select q.id, q.hit, q.is_last
      from pawl.pending_sources(p_domain_id) s
      cross join lateral (
        select x.id, m.hit, x.n = v_rows as is_last
        from (
          select u.id, u.hit, row_number() over () as n -- of one of these, so in its order
          from (
            (select r.pos as id, r.pos = r.id as hit from pawl.ready r
             where s.kind = 'queued' and r.domain_id = s.domain_id and r.priority = s.priority and r.pos < p_before and r.pos > p_after
             order by r.pos desc)
            union all
            (select r.id, p_domain_id is null or r.domain_id = p_domain_id from pawl.ready r
             where s.kind = 'requeued' and r.pos <> r.id and r.id < p_before and r.id > p_after
             order by r.id desc)
            union all
            (select d.id, true from pawl.delayed d
             where s.kind = 'delayed' and s.domain_id is null and d.id < p_before and d.id > p_after
             order by d.id desc)
            union all
            (select d.id, true from pawl.delayed d
             where s.kind = 'delayed' and d.domain_id = s.domain_id and d.id < p_before and d.id > p_after
             order by d.id desc)
            union all
            (select p.id, true from pawl.parked p
             where s.kind = 'parked' and p.domain_id = s.domain_id and p.id < p_before and p.id > p_after
             order by p.id desc)
          ) u
          limit v_rows
        ) x
        cross join lateral (
          select x.hit and (p_type is null and p_filter is null or coalesce((select (p_type is null or c.type = p_type)
                    and ((p_filter).type is null or c.type = (p_filter).type)
                    and ((p_filter).correlation_id is null or c.correlation_id = (p_filter).correlation_id)
                    and ((p_filter).order_key is null or c.order_key = (p_filter).order_key)
                    and ((p_filter).since is null or c.created_at >= (p_filter).since)
                    and ((p_filter).until is null or c.created_at <= (p_filter).until)
                    and ((p_filter).domains is null or c.domain_id = any ((p_filter).domains))
             from pawl.command c where c.id = x.id), false)) as hit
        ) m
        where m.hit or x.n = v_rows
        limit p_limit
      ) q
    )
    select f.id, f.hit, coalesce(f.is_last, false)
    from found f
    where f.id >= coalesce((select max(l.id) from found l where l.is_last), 0)
    order by f.id desc
    limit p_limit;
end
$$;

-- Is any command of a domain queued, delayed or leased? p_types: only these; NULL for all.
-- Plan: by index in ready and delayed, up to the first such row; all leases, which are as many as workers hold.
create or replace function pawl.has_work (p_domain_id integer, p_types text[])
  returns boolean
  language plpgsql stable security definer set search_path = pawl, pg_temp
  set plan = keyed_cached
as $$
begin
  return exists (
      select from pawl.ready r
      where r.domain_id = p_domain_id
        and (p_types is null or exists (select from pawl.command c where c.id = r.id and c.type = any (p_types))))
    or exists (
      select from pawl.delayed d
      where d.domain_id = p_domain_id
        and (p_types is null or exists (select from pawl.command c where c.id = d.id and c.type = any (p_types))))
    or exists (
      select from pawl.lease l
      where l.domain_id = p_domain_id
        and (p_types is null or exists (select from pawl.command c where c.id = l.id and c.type = any (p_types))))
    or exists (select from pawl.order_handover h where h.domain_id = p_domain_id);
end
$$;

-- The ids of commands with a status (null: any) below p_before, as above. Each status is a table of its own. The statement is built, so
-- that it names what the index is for: the domain or none, and the condition of a partial index. p_status may also be OPEN (not ended) or ENDED. p_batch,
-- p_command_id: only commands of this batch, or with this id; they have indexes of their own.
create or replace function pawl.command_ids (
  p_domain_id integer, p_status text, p_type text, p_before bigint, p_limit integer, p_rows integer,
  p_filter pawl.command_filter default null, p_after bigint default -9223372036854775808, p_batch bigint default null,
  p_command_id uuid default null)
  returns table (id bigint, hit boolean, is_last boolean)
  language plpgsql stable set search_path = pawl, pg_temp
  set plan = keyed_cached
as $$
declare
  v_domain text := case when p_domain_id is null then '' else ' and s.domain_id = $1' end;
  v_columns text := 's.id, s.domain_id';
  v_source text; -- table and condition of the rows that are read
  v_type text := '(select c.type from pawl.command c where c.id = x.id)';
  v_hit text := 'true';
  v_filter text := '';
begin
  perform pawl.page_check(p_limit, p_rows);
  if not (p_filter is null) then -- one of its members is not null
    v_filter := ' and coalesce((
      select (($7).correlation_id is null or c.correlation_id = ($7).correlation_id)
             and (($7).type is null or c.type = ($7).type)
             and (($7).order_key is null or c.order_key = ($7).order_key)
             and (($7).since is null or c.created_at >= ($7).since)
             and (($7).until is null or c.created_at <= ($7).until)
             and (($7).domains is null or c.domain_id = any (($7).domains))
      from pawl.command c where c.id = x.id), false)';
  end if;
  case
    when p_batch is not null or p_command_id is not null then
      v_source := 'pawl.command s where s.id < $4'
        || case when p_batch is not null then ' and s.batch_id = $9' else '' end
        || case when p_command_id is not null then ' and s.command_id = $10' else '' end;
      v_hit := case p_status when 'OPEN' then 'not exists (select from pawl.outcome o where o.id = x.id)'
                             when 'ENDED' then 'exists (select from pawl.outcome o where o.id = x.id)'
                             else '($2 is null or pawl.command_status(x.id) = $2)' end;
    when p_status = 'OPEN' then
      v_source := 'pawl.command s where s.id < $4';
      v_hit := 'not exists (select from pawl.outcome o where o.id = x.id)';
    when p_status = 'ENDED' then
      v_source := 'pawl.outcome s where s.id < $4';
    when p_status = 'PENDING' then
      return query
        select p.id, p.hit, p.is_last from pawl.pending_ids(p_domain_id, p_type, p_before, p_limit, p_rows, p_filter, p_after) p;
      return;
    when p_status = 'IN_PROGRESS' then
      v_source := 'pawl.lease s where s.id < $4';
    when p_status = 'IN_TSQ' then
      v_source := 'pawl.tsq s where s.id < $4' || v_domain;
    when p_status = 'COMPLETED' then
      v_source := 'pawl.outcome s where s.id < $4';
      v_columns := v_columns || ', s.status';
      v_hit := 'x.status = $2';
    when p_status in ('FAILED', 'CANCELED') then
      v_source := 'pawl.outcome s where s.id < $4 and s.status <> ''COMPLETED'' and s.status = $2' || v_domain;
    else
      v_source := 'pawl.command s where s.id < $4';
      v_columns := v_columns || ', s.type';
      v_type := 'x.type';
  end case;
  return query execute format(
    'select x.id, m.hit, coalesce(x.n = $6, false)
     from (
       select %s, row_number() over (order by s.id desc) as n
       from %s and s.id > $8
       order by s.id desc
       limit $6
     ) x
     cross join lateral (
       select %s and ($1 is null or x.domain_id = $1) and ($3 is null or %s = $3)%s as hit
     ) m
     where m.hit or x.n = $6
     order by x.id desc
     limit $5', v_columns, v_source, v_hit, v_type, v_filter)
    using p_domain_id, p_status, p_type, p_before, p_limit, p_rows, p_filter, p_after, p_batch, p_command_id;
end
$$;

-- The numbers of the domains that have one of these names, or begin as one that ends with "*" does. Null: no names were given.
create or replace function pawl.domains_like (p_names text[])
  returns integer[]
  language sql stable
as $$
  select case when p_names is not null then
    array(select distinct d.id from pawl.domain_name d where d.name like any (pawl.names_like(p_names))) end
$$;

-- Commands, newest first, below p_before, with what people want to see. p_domains: names of domains, or their beginnings and a "*": what the caller may see. An unknown domain has no commands. Reads at most p_rows rows of
-- the table that has the commands of this status. When that ends the page, its last row has only searched_to: there may be more matching
-- commands below that id. Other rows have their own id there.
create or replace function pawl.command_page (
  p_domain text default null, p_status text default null, p_type text default null, p_before bigint default null,
  p_limit integer default 100, p_rows integer default 20000, p_since timestamptz default null, p_until timestamptz default null,
  p_batch_id uuid default null, p_command_id uuid default null, p_correlation_id text default null, p_order_key text default null,
  p_domains text[] default null)
  returns table (id bigint, command_id uuid, domain text, type text, status text, attempts integer, created_at bigint,
                 error text, searched_to bigint)
  language plpgsql stable security definer set search_path = pawl, pg_temp
  set plan = keyed_cached
as $$
#variable_conflict use_column
declare
  v_domain integer := (select d.id from pawl.domain_name d where d.name = p_domain order by d.id limit 1);
  v_batch bigint := (select b.id from pawl.batch b where b.batch_id = p_batch_id);
  v_filter pawl.command_filter;
  v_range record;
  v_ids bigint[];
  v_last bigint;
  v_count integer;
begin
  if (p_limit between 1 and 1000 and p_rows between 1 and 1000000) is not true then
    raise exception 'limit must be from 1 to 1000 and rows from 1 to 1000000, got % and %', coalesce(p_limit::text, 'null'),
      coalesce(p_rows::text, 'null') using errcode = 'QU001';
  end if;
  if p_domain is not null and v_domain is null or p_batch_id is not null and v_batch is null then
    return;
  end if;
  v_filter := row(null, p_correlation_id, p_order_key, p_since, p_until, pawl.domains_like(p_domains));
  select r.before, r.after into v_range from pawl.id_range('pawl.command', 'created_at', p_since, p_until, p_before) r;
  select array_agg(i.id) filter (where i.hit), max(i.id) filter (where i.is_last), count(*) filter (where i.hit)
  into v_ids, v_last, v_count
  from pawl.command_ids(v_domain, p_status, p_type, v_range.before, p_limit, p_rows, v_filter, v_range.after, v_batch, p_command_id) i;
  return query
    select c.id, c.command_id, d.name, c.type, pawl.command_status(c.id),
           coalesce(o.attempts, l.attempt, w.attempt, t.attempt, r.attempt, 0)::integer, pawl.micros(c.created_at),
           case when o.id is null then pawl.command_error(c.id) else o.error end, c.id
    from pawl.command c
    cross join lateral (select n.name from pawl.domain_name n where n.id = c.domain_id limit 1) d
    left join pawl.outcome o on o.id = c.id
    left join pawl.lease l on l.id = c.id
    left join pawl.delayed w on w.id = c.id
    left join pawl.tsq t on t.id = c.id
    left join lateral (select r.attempt from pawl.ready r where r.id = c.id and r.pos <> r.id limit 1) r on true
    where c.id = any (v_ids)
    order by c.id desc;
  if v_last is not null and v_count < p_limit then
    searched_to := v_last;
    return next;
  end if;
end
$$;

-- The same for a caller that is bound to domains (bus/bound.sql), or whose p_bound is null: the page is merged from one of each domain, down to where the
-- reading of one of them ended.
create or replace function pawl.command_page_bound (
  p_bound text[], p_domain text default null, p_status text default null, p_type text default null, p_before bigint default null,
  p_limit integer default 100, p_rows integer default 20000, p_since timestamptz default null, p_until timestamptz default null,
  p_batch_id uuid default null, p_command_id uuid default null, p_correlation_id text default null, p_order_key text default null)
  returns table (id bigint, command_id uuid, domain text, type text, status text, attempts integer, created_at bigint,
                 error text, searched_to bigint)
  language plpgsql stable security definer set search_path = pawl, pg_temp
  set plan = keyed_cached
  rows 100
as $$
#variable_conflict use_column
begin
  perform pawl.page_check(p_limit, p_rows);
  if p_bound is null then
    return query select p.* from pawl.command_page(p_domain, p_status, p_type, p_before, p_limit, p_rows, p_since, p_until, p_batch_id, p_command_id, p_correlation_id, p_order_key) p;
    return;
  end if;
  return query
    with page as materialized (
      select p.* from pawl.bound_domains(p_bound, p_domain, 'commands') b
      cross join lateral pawl.command_page(b.domain, p_status, p_type, p_before, p_limit, p_rows, p_since, p_until, p_batch_id, p_command_id, p_correlation_id, p_order_key) p
    )
    select l.*
    from page l
    where l.searched_to >= coalesce((select max(e.searched_to) from page e where e.id is null), l.searched_to)
    order by l.searched_to desc, l.id is null
    limit p_limit;
end
$$;

-- The same without a bound: however many rows have to be read until p_limit commands (null: all) are found.
create or replace function pawl.command_list (
  p_domain text default null, p_status text default null, p_type text default null, p_before bigint default null,
  p_limit integer default 100)
  returns table (id bigint, command_id uuid, domain text, type text, status text, attempts integer, created_at bigint,
                 error text)
  language plpgsql stable security definer set search_path = pawl, pg_temp
as $$
#variable_conflict use_column
declare
  v_row record;
  v_before bigint := p_before;
  v_left bigint := coalesce(p_limit, 9223372036854775807);
  v_page integer;
  v_rows integer;
begin
  while v_left > 0 loop
    v_page := least(v_left, 1000);
    v_rows := 0;
    for v_row in select * from pawl.command_page(p_domain, p_status, p_type, v_before, v_page) loop
      v_before := v_row.searched_to;
      v_rows := v_rows + 1;
      if v_row.id is null then
        v_rows := v_page; -- there may be more
        exit;
      end if;
      id := v_row.id; command_id := v_row.command_id; domain := v_row.domain; type := v_row.type; status := v_row.status;
      attempts := v_row.attempts; created_at := v_row.created_at; error := v_row.error;
      v_left := v_left - 1;
      return next;
    end loop;
    exit when v_rows < v_page;
  end loop;
end
$$;

create or replace function pawl.command_count (
  p_domain text default null, p_status text default null, p_type text default null)
  returns bigint
  language plpgsql stable security definer set search_path = pawl, pg_temp
as $$
declare
  v_domain integer := (select d.id from pawl.domain_name d where d.name = p_domain order by d.id limit 1);
begin
  if p_domain is not null and v_domain is null then
    return 0;
  end if;
  return (select count(*) from pawl.command_ids(v_domain, p_status, p_type, 9223372036854775807, null, null) i where i.hit);
end
$$;

-- How many rows there are: counted, up to 10000, else as many or the server's estimate, whichever is more.
create or replace function pawl.rows_about (p_counted bigint, p_table regclass)
  returns bigint
  language sql stable
as $$
  select case when p_counted < 10000 then p_counted else greatest(p_counted, pg_catalog.pg_stat_get_live_tuples(p_table)) end
$$;

-- The amount of work, for monitoring. Called every few seconds, so at most 10000 rows of a table are counted; above that ready, delayed and
-- leased are estimates from the server's statistics, and in_tsq is 10000. The statistics alone are wrong for as long as no vacuum runs. oldest is
-- the position of the command that has been queued for longest, NULL for none, and oldest_ms the age of one that was never delayed or claimed; for
-- the others a monitor that records `allocated` knows when a position was allocated.
-- Plan: one step per domain and priority that has work, and the first 10000 rows of each table, by index.
create or replace function pawl.backlog (
  out ready bigint, out delayed bigint, out leased bigint, out in_tsq bigint, out allocated bigint, out oldest bigint,
  out oldest_ms bigint, out oldest_domain text)
  language plpgsql stable security definer set search_path = pawl, pg_temp
  set plan = keyed
as $$
declare
  v_id bigint;
  v_domain integer;
begin
  allocated := pawl.allocated();
  select h.pos, h.id, h.domain_id into oldest, v_id, v_domain from pawl.ready_heads() h order by h.pos limit 1;
  oldest_domain := (select n.name from pawl.domain_name n where n.id = v_domain limit 1);
  if oldest = v_id then
    select extract(epoch from pawl.now() - c.created_at) * 1000 into oldest_ms from pawl.command c where c.id = v_id;
  end if;
  ready := pawl.rows_about((select count(*) from (select from pawl.ready r order by r.domain_id, r.priority, r.pos limit 10000) r), 'pawl.ready');
  delayed := pawl.rows_about((select count(*) from (select from pawl.delayed d order by d.id limit 10000) d), 'pawl.delayed');
  leased := pawl.rows_about((select count(*) from (select from pawl.lease l order by l.id limit 10000) l), 'pawl.lease');
  in_tsq := (select count(*) from (select from pawl.tsq t order by t.id limit 10000) t);
end
$$;

-- When some commands were claimed and ended, as pods ask for samples of what they have claimed. wait_us: from the send to the claim, of a first
-- attempt; run_us: of the attempt whose outcome ended it; null: not known. is_running: a worker has it.
create or replace function pawl.command_times (p_ids bigint[])
  returns table (id bigint, wait_us bigint, run_us bigint, is_running boolean)
  language plpgsql stable security definer set search_path = pawl, pg_temp
  set plan = keyed_cached
as $$
#variable_conflict use_column
begin
  if (cardinality(p_ids) <= 20000) is not true then
    raise exception 'ids must be an array of at most 20000' using errcode = 'QU001';
  end if;
  return query
    select c.id,
           case when coalesce(o.attempts, l.attempt) = 1
                then greatest((extract(epoch from coalesce(o.started_at, l.started_at) - c.created_at) * 1000000)::bigint, 0) end,
           greatest((extract(epoch from o.ended_at - o.started_at) * 1000000)::bigint, 0), l.id is not null
    from unnest(p_ids) i (id)
    join pawl.command c on c.id = i.id
    left join pawl.outcome o on o.id = i.id
    left join pawl.lease l on l.id = i.id;
end
$$;
