-- gate.sql - operators pause and limit domains (ADR 52); gate_claim.sql has what claims do about it.
--
-- A decision that is repeated changes nothing. Each is recorded in pawl.control_event. Workers are notified of a pause in channel pawl_pause, because
-- they release what they have claimed and not begun.
-- Lock order: rows of pawl.gate by domain.
-- Errors: QU001 a domain, a type or a number out of range.

-- The row of a domain's gate, locked. A claim may delete one without use meanwhile.
create or replace function pawl.gate_open (p_domain_id integer)
  returns void
  language plpgsql
as $$
begin
  loop
    insert into pawl.gate (domain_id) values (p_domain_id) on conflict (domain_id) do nothing;
    perform from pawl.gate g where g.domain_id = p_domain_id for update;
    exit when found;
  end loop;
end
$$;

-- What claims read follows from the pauses and limits.
create or replace function pawl.gate_refresh (p_domain_id integer)
  returns void
  language plpgsql
as $$
declare
  c_longest_claim constant interval := interval '30 s';
  v_has_running boolean := exists (select from pawl.gate_limit l where l.domain_id = p_domain_id and l.running is not null);
begin
  update pawl.gate g
  set is_shut = exists (select from pawl.pause p where p.domain_id = p_domain_id and p.type = '*'), has_running = v_has_running,
      adopt_until = case when v_has_running and not g.has_running then pawl.now() + c_longest_claim when v_has_running then g.adopt_until end
  where g.domain_id = p_domain_id;
  if not v_has_running then
    delete from pawl.slot s where s.domain_id = p_domain_id;
  end if;
  perform pawl.gate_end(p_domain_id);
end
$$;

-- The queues that a pause of a domain is about: its commands, and its processes.
create or replace function pawl.gate_domains (p_domain text)
  returns table (id integer, name text)
  language sql
as $$
  select pawl.domain_id(n.name), n.name
  from unnest(case when p_domain like 'process:%' then array[p_domain]
                   when pawl.is_name('process:' || p_domain, 63) then array[p_domain, 'process:' || p_domain]
                   else array[p_domain] end) n (name)
  order by 1
$$;

create or replace function pawl.gate_types_check (p_types text[])
  returns void
  language plpgsql
as $$
begin
  perform pawl.array_check('types', p_types, coalesce(cardinality(p_types), 0), 'QU001', true);
  if cardinality(p_types) not between 1 and 100 then
    raise exception 'types must have 1 to 100 names, got %', cardinality(p_types) using errcode = 'QU001';
  end if;
  perform pawl.name_check('type', t, 100) from unnest(p_types) t;
end
$$;

-- Pause a domain, or some types of its commands (p_types not null): claims find none of them until it is resumed. What runs goes on, what was claimed and
-- has not begun is released. Processes of the domain are paused with its commands; `process:DOMAIN` names them alone. Returns how many pauses are new.
create or replace function pawl.domain_pause (p_domain text, p_types text[] default null, p_operator text default null, p_reason text default null)
  returns bigint
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
declare
  v_domain record;
  v_count bigint;
  v_new bigint := 0;
begin
  perform pawl.name_check('domain', p_domain, 63), pawl.gate_types_check(p_types);
  for v_domain in select d.id, d.name from pawl.gate_domains(p_domain) d loop
    perform pawl.gate_open(v_domain.id);
    insert into pawl.pause (domain_id, type, reason, operator, at)
    select distinct v_domain.id, t, p_reason, pawl.operator_name(p_operator), pawl.now() from unnest(coalesce(p_types, '{*}')) t
    on conflict (domain_id, type) do nothing;
    get diagnostics v_count = row_count;
    v_new := v_new + v_count;
    perform pawl.gate_refresh(v_domain.id), pg_notify('pawl_pause', v_domain.name);
  end loop;
  if v_new > 0 then
    perform pawl.control_add('domain', p_domain, 'pause', p_operator, p_reason,
                             case when p_types is not null then jsonb_build_object('types', p_types) end);
  end if;
  return v_new;
end
$$;

-- End the pause of a domain, or of some types. A pause ends as it was made: one of types outlasts that of the domain. Returns how many pauses ended.
create or replace function pawl.domain_resume (p_domain text, p_types text[] default null, p_operator text default null, p_reason text default null)
  returns bigint
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
declare
  v_domain record;
  v_count bigint;
  v_ended bigint := 0;
  v_domains integer[];
begin
  perform pawl.name_check('domain', p_domain, 63), pawl.gate_types_check(p_types);
  for v_domain in select d.id, d.name from pawl.gate_domains(p_domain) d loop
    perform pawl.gate_open(v_domain.id);
    delete from pawl.pause p where p.domain_id = v_domain.id and p.type = any (coalesce(p_types, '{*}'));
    get diagnostics v_count = row_count;
    v_ended := v_ended + v_count;
    perform pawl.gate_refresh(v_domain.id), pg_notify('pawl_pause', v_domain.name);
    v_domains := v_domains || v_domain.id;
  end loop;
  if v_ended > 0 then
    perform pawl.control_add('domain', p_domain, 'resume', p_operator, p_reason,
                             case when p_types is not null then jsonb_build_object('types', p_types) end);
    perform pawl.wake_later(v_domains);
  end if;
  return v_ended;
end
$$;

-- Limits have changed: lines that waited for a time or for an end look again, the first c_most of them; the others when their time comes.
create or replace function pawl.gate_again (p_domain_id integer)
  returns void
  language plpgsql
as $$
declare
  c_most constant integer := 10000;
  v_now timestamptz := pawl.now();
begin
  update pawl.line l set turn_at = v_now
  where l.id = any (array(
    select w.id
    from unnest(pawl.gate_types(p_domain_id)) t (type)
    cross join generate_series(0, 9) p (priority)
    cross join lateral (
      select w.id from pawl.line w
      where w.domain_id = p_domain_id and w.type = t.type and w.priority = p.priority and w.turn_at > v_now
      order by w.turn_at limit c_most) w
    limit c_most));
end
$$;

create or replace function pawl.limit_check (p_running integer, p_rate integer, p_period_s integer, p_burst integer, p_per_key boolean)
  returns void
  language plpgsql
as $$
begin
  if p_running not between 1 and 100000 then
    raise exception 'running must be from 1 to 100000, got %', p_running using errcode = 'QU001';
  end if;
  if p_rate not between 1 and 1000000 then
    raise exception 'rate must be from 1 to 1000000, got %', p_rate using errcode = 'QU001';
  end if;
  if (coalesce(p_period_s, 1) in (1, 60)) is not true then
    raise exception 'period must be 1 or 60 seconds, got %', p_period_s using errcode = 'QU001';
  end if;
  if p_burst not between 1 and 1000000 then
    raise exception 'burst must be from 1 to 1000000, got %', p_burst using errcode = 'QU001';
  end if;
  if p_burst is not null and p_rate is null then
    raise exception 'burst needs a rate' using errcode = 'QU001';
  end if;
  if p_running is null and p_rate is null and p_per_key is not true then
    raise exception 'running or rate is required' using errcode = 'QU001';
  end if;
end
$$;

-- Set a limit of a domain (p_type null) or a type of its commands, in the place of the one that it had: at most p_running run, and at most p_rate
-- begin in p_period_s seconds (1 or 60). p_burst: null: never more than that in any such time; else so many may begin at once after a rest, and p_rate per
-- period from then on. p_per_key: for each key by itself, and keys take turns; without numbers they only take turns. A limit per key stands beside one
-- without. It holds from the next claim on.
create or replace function pawl.domain_limit_set (
  p_domain text, p_type text default null, p_running integer default null, p_rate integer default null, p_period_s integer default 1,
  p_burst integer default null, p_per_key boolean default false, p_operator text default null, p_reason text default null)
  returns void
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
declare
  v_domain_id integer;
  v_type text := coalesce(p_type, '*');
begin
  perform pawl.name_check('domain', p_domain, 63), pawl.limit_check(p_running, p_rate, p_period_s, p_burst, p_per_key);
  if p_type is not null then
    perform pawl.name_check('type', p_type, 100);
  end if;
  v_domain_id := pawl.domain_id(p_domain);
  perform pawl.gate_open(v_domain_id);
  insert into pawl.gate_limit (domain_id, type, per_key, running, rate, period_s, burst)
  values (v_domain_id, v_type, coalesce(p_per_key, false), p_running, p_rate, coalesce(p_period_s, 1), p_burst)
  on conflict (domain_id, type, per_key) do update
  set running = excluded.running, rate = excluded.rate, period_s = excluded.period_s, burst = excluded.burst;
  perform pawl.gate_again(v_domain_id), pawl.gate_refresh(v_domain_id);
  perform pawl.control_add('domain', p_domain, 'limit', p_operator, p_reason,
    jsonb_strip_nulls(jsonb_build_object('type', p_type, 'running', p_running, 'rate', p_rate, 'period_s', case when p_rate is not null then coalesce(p_period_s, 1) end,
                                         'burst', p_burst, 'per_key', nullif(p_per_key, false))));
  perform pawl.wake_later(array[v_domain_id]);
end
$$;

-- Remove the limits of a domain, or of a type (p_type not null), or only those per key or not per key (p_per_key not null). Returns how many there were.
create or replace function pawl.domain_limit_remove (
  p_domain text, p_type text default null, p_per_key boolean default null, p_operator text default null, p_reason text default null)
  returns bigint
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
declare
  v_domain_id integer := pawl.domain_find(p_domain);
  v_count bigint;
begin
  if v_domain_id is null or not exists (select from pawl.gate_limit l where l.domain_id = v_domain_id) then
    return 0;
  end if;
  perform pawl.gate_open(v_domain_id);
  delete from pawl.gate_limit l
  where l.domain_id = v_domain_id and (p_type is null or l.type = p_type) and (p_per_key is null or l.per_key = p_per_key);
  get diagnostics v_count = row_count;
  perform pawl.gate_again(v_domain_id), pawl.gate_refresh(v_domain_id);
  if v_count > 0 then
    perform pawl.control_add('domain', p_domain, 'unlimit', p_operator, p_reason,
                             nullif(jsonb_strip_nulls(jsonb_build_object('type', p_type, 'per_key', p_per_key)), '{}'));
    perform pawl.wake_later(array[v_domain_id]);
  end if;
  return v_count;
end
$$;

-- The limits of a domain, its own first. running_now: how many commands run that the limit counts, of all keys; null: it does not count them.
create or replace function pawl.domain_limits (p_domain text)
  returns table (type text, per_key boolean, running integer, rate integer, period_s integer, burst integer, running_now bigint)
  language sql stable security definer set search_path = pawl, pg_temp
as $$
  select l.type, l.per_key, l.running, l.rate, l.period_s, l.burst,
         case when l.running is not null then
           (select count(*) from pawl.slot s
            where s.domain_id = l.domain_id and (l.type = '*' or s.type = l.type)
              and exists (select from pawl.lease x where x.id = s.id and x.token = s.token)) end
  from pawl.gate_limit l
  where l.domain_id = pawl.domain_find(p_domain)
  order by l.type <> '*', l.type, l.per_key
  limit 1000
$$;

-- The pauses of a domain and its processes, of which those of the domain itself are first.
create or replace function pawl.domain_pauses (p_domain text)
  returns table (domain text, type text, reason text, operator text, at timestamptz)
  language sql stable security definer set search_path = pawl, pg_temp
as $$
  select n.name, p.type, p.reason, p.operator, p.at
  from (select distinct d.id, d.name from pawl.domain_name d where d.name in (p_domain, 'process:' || p_domain)) n
  join pawl.pause p on p.domain_id = n.id
  order by n.name <> p_domain, p.type <> '*', p.type
  limit 1000
$$;
