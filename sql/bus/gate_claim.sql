-- gate_claim.sql - claims of domains that are paused or limited (ADR 52).
--
-- Such a claim locks the domain's row in pawl.gate, so that claims of one domain follow each other. It moves what it finds in the queue and what
-- a pause or a limit is about into lines (pawl.ready, priority -1): one for each type, limit key and priority. Then it takes from lines what may
-- begin. A line that a limit per key holds back is not visited before there may be a place, and the lines of a type that is paused, or whose
-- limit is used up, are not read at all. So a claim costs the same however many commands are held back.
--
-- A command with an order key is moved when it has its key: the order is decided first, and the others of the key stay parked.
--
-- Lock order: the row of pawl.gate, then as a claim. The row is waited for, 100 ms at most.
-- Errors: QU001 the transaction is not READ COMMITTED: an old snapshot does not show what others have begun.

-- Locks the gate of a domain. false: another claim has had it for too long, or the gate is gone.
create or replace function pawl.gate_lock (p_domain_id integer)
  returns boolean
  language plpgsql
as $$
declare
  v_lock_timeout text := current_setting('lock_timeout');
  v_is_locked boolean := false;
begin
  if current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
    raise exception 'a claim of a domain with limits or pauses needs the isolation level READ COMMITTED' using errcode = 'QU001';
  end if;
  perform from pawl.gate g where g.domain_id = p_domain_id for update skip locked;
  if found then
    return true;
  end if;
  begin
    perform set_config('lock_timeout', '100ms', true);
    perform from pawl.gate g where g.domain_id = p_domain_id for update;
    v_is_locked := found;
    perform set_config('lock_timeout', v_lock_timeout, true);
  exception when lock_not_available then
    v_is_locked := false;
  end;
  return v_is_locked;
end
$$;

-- Leases of claims that did not see the limit get slots, too. There may be more of them until the longest call of a pod has ended, so each claim looks.
create or replace function pawl.gate_adopt (p_domain_id integer, p_now timestamptz)
  returns void
  language plpgsql
as $$
begin
  insert into pawl.slot (domain_id, id, token, type, limit_key)
  select l.domain_id, l.id, l.token, c.type, pawl.limit_key(c.order_key)
  from pawl.lease l
  cross join lateral (select c.type, c.order_key from pawl.command c where c.id = l.id limit 1) c
  where l.domain_id = p_domain_id
  on conflict (domain_id, id) do nothing;
  update pawl.gate g set adopt_until = null where g.domain_id = p_domain_id and g.adopt_until < p_now;
end
$$;

-- Deletes the slots of leases that have ended, and gives the lines of their keys a turn.
create or replace function pawl.gate_reap (p_domain_id integer, p_now timestamptz)
  returns void
  language plpgsql
as $$
declare
  v_keys text[];
begin
  with gone as (
    delete from pawl.slot s
    where s.domain_id = p_domain_id and not exists (select from pawl.lease l where l.id = s.id and l.token = s.token)
    returning s.limit_key
  )
  select array_agg(distinct g.limit_key) into v_keys from gone g;
  if v_keys is not null then
    update pawl.line l set turn_at = p_now
    where l.id = any (array(
      select w.id from unnest(v_keys) k (key)
      cross join lateral ( -- by the index of keys, whatever the planner knows about the table
        select w.id from pawl.line w
        where w.limit_key = k.key and w.domain_id = p_domain_id and w.turn_at = 'infinity'
        order by w.limit_key, w.domain_id, w.type, w.priority limit 10000) w));
  end if;
end
$$;

-- Moves rows of pawl.ready, which the caller has locked, into their lines.
create or replace function pawl.gate_put (p_domain_id integer, p_tids tid[], p_types text[], p_keys text[], p_priorities smallint[], p_now timestamptz)
  returns void
  language plpgsql
as $$
declare
  v_deleted bigint;
  v_inserted bigint;
begin
  insert into pawl.line (domain_id, limit_key, type, priority, turn_at)
  select distinct p_domain_id, u.key, u.type, u.priority, p_now from unnest(p_types, p_keys, p_priorities) u (type, key, priority)
  on conflict on constraint line_key do nothing;
  perform pawl.command_allocation_lock();
  with item as materialized (
    select u.tid, u.ord, l.id as line
    from unnest(p_tids, p_types, p_keys, p_priorities) with ordinality u (tid, type, key, priority, ord)
    cross join lateral (
      select l.id from pawl.line l
      where l.domain_id = p_domain_id and l.limit_key = u.key and l.type = u.type and l.priority = u.priority
      order by l.limit_key, l.domain_id, l.type, l.priority limit 1) l -- by the index of keys, whatever the planner knows about the table
  ), taken as (
    delete from pawl.ready r where r.ctid = any (p_tids) returning r.ctid as tid, r.*
  ), kept as (
    insert into pawl.ready (domain_id, priority, pos, id, attempt, max_attempts, extras, line)
    select p_domain_id, -1, nextval('pawl.command_seq'), s.id, s.attempt, s.max_attempts, s.extras, s.line
    from ( -- by grouping, because row by row a join of two lists takes the square of their length
      select max(v.id) as id, max(v.attempt) as attempt, max(v.max_attempts) as max_attempts, bool_or(v.extras) as extras, max(v.line) as line
      from (select t.tid, null::bigint, t.id, t.attempt, t.max_attempts, t.extras, null::bigint from taken t
            union all
            select i.tid, i.ord, null, null, null, null, i.line from item i) v (tid, ord, id, attempt, max_attempts, extras, line)
      group by v.tid
      having max(v.id) is not null
      order by max(v.ord)) s
    returning 1
  )
  select (select count(*) from taken), (select count(*) from kept) into v_deleted, v_inserted;
  perform pawl.moved(v_deleted, v_inserted);
end
$$;

-- Of rows that a claim has found and locked: those with keys that have their keys, and all others, are moved into lines.
create or replace function pawl.gate_move (
  p_domain_id integer, p_tids tid[], p_ids bigint[], p_order_keys text[], p_types text[], p_priorities smallint[], p_now timestamptz)
  returns void
  language plpgsql
as $$
declare
  v_admitted bigint[];
begin
  select pawl.order_admit(p_domain_id, array_agg(u.id), array_agg(u.key), cardinality(p_ids)) into v_admitted
  from unnest(p_ids, p_order_keys) u (id, key) where u.key is not null having count(*) > 0;
  perform pawl.gate_put(p_domain_id, array_agg(u.tid order by u.ord), array_agg(u.type order by u.ord),
                        array_agg(pawl.limit_key(u.key) order by u.ord), array_agg(u.priority order by u.ord), p_now)
  from unnest(p_tids, p_ids, p_order_keys, p_types, p_priorities) with ordinality u (tid, id, key, type, priority, ord)
  where u.key is null or (u.id in (select unnest(v_admitted))) is true -- so written, it is hashed
  having count(*) > 0;
end
$$;

-- Reads the queue behind p_after and moves what the gate is about into lines: all types (p_gated null), or those. Reads on, up to c_read_max, until it
-- has passed p_limit commands of other types. read: how many commands; open: the other types that it has seen; upto: for each priority, the position
-- up to which nothing is left that a claim of p_types could take; is_cut: there are more.
create or replace function pawl.gate_sort (
  p_domain_id integer, p_after bigint[], p_gated text[], p_types text[], p_limit integer, p_now timestamptz,
  out read integer, out open text[], out upto bigint[], out is_cut boolean)
  language plpgsql
as $$
declare
  c_read_max constant integer := 5000;
  v_window integer := greatest(100, 2 * p_limit);
  v_after bigint[] := p_after;
  v_firsts bigint[] := array_fill(null::bigint, array[10]); -- of each priority, the first that a claim could take
  v_passed integer := 0;
  v_found record;
begin
  read := 0;
  open := '{}';
  loop
    with found as materialized ( -- rows are locked only if they are moved
      select r.id, r.pos, r.priority, r.order_key, c.type, g.is_gated, l.tid
      from (
        select r.id, r.pos, r.priority, r.order_key
        from generate_series(9, 0, -1) p (priority)
        cross join lateral (
          select r.id, r.pos, r.priority, r.order_key from pawl.ready r
          where r.domain_id = p_domain_id and r.priority = p.priority and r.pos > v_after[p.priority + 1]
          order by r.pos limit v_window) r
        limit v_window) r
      cross join lateral (select c.type from pawl.command c where c.id = r.id limit 1) c
      cross join lateral (select p_gated is null or c.type = any (p_gated) as is_gated) g
      left join lateral (
        select l.ctid as tid from pawl.ready l
        where g.is_gated and l.domain_id = p_domain_id and l.priority = r.priority and l.pos = r.pos for update skip locked) l on true
    ), ends as (
      select f.priority, max(f.pos) as last,
             min(f.pos) filter (where not f.is_gated and (p_types is null or f.type = any (p_types))) as first
      from found f group by f.priority
    )
    select count(*) as count, count(*) filter (where not f.is_gated) as passed,
           array_agg(f.tid) filter (where f.tid is not null) as tids, array_agg(f.id) filter (where f.tid is not null) as ids,
           array_agg(f.order_key) filter (where f.tid is not null) as order_keys,
           array_agg(f.type) filter (where f.tid is not null) as types,
           array_agg(f.priority) filter (where f.tid is not null) as priorities,
           array_agg(distinct f.type) filter (where not f.is_gated) as open,
           array(select coalesce(e.last, v_after[p.priority + 1])
                 from generate_series(0, 9) p (priority) left join ends e on e.priority = p.priority order by p.priority) as lasts,
           array(select coalesce(v_firsts[p.priority + 1], e.first)
                 from generate_series(0, 9) p (priority) left join ends e on e.priority = p.priority order by p.priority) as firsts
    into v_found
    from found f;
    if v_found.tids is not null then
      perform pawl.gate_move(p_domain_id, v_found.tids, v_found.ids, v_found.order_keys, v_found.types, v_found.priorities, p_now);
    end if;
    read := read + v_found.count;
    open := open || coalesce(v_found.open, '{}');
    v_passed := v_passed + v_found.passed;
    v_after := v_found.lasts;
    v_firsts := v_found.firsts;
    is_cut := v_found.count = v_window;
    exit when not is_cut or v_passed >= p_limit or read >= c_read_max;
    v_window := least(4 * v_window, c_read_max - read);
  end loop;
  upto := array(select least(f.first - 1, f.last) from unnest(v_firsts, v_after) with ordinality f (first, last, ord) order by f.ord);
end
$$;

-- The types of a domain that have lines.
create or replace function pawl.gate_types (p_domain_id integer)
  returns text[]
  language sql stable
as $$
  with recursive found as (
    (select l.type from pawl.line l where l.domain_id = p_domain_id order by l.type limit 1)
    union all
    select n.type
    from found f
    cross join lateral (select l.type from pawl.line l where l.domain_id = p_domain_id and l.type > f.type order by l.type limit 1) n
  )
  select coalesce(array_agg(f.type), '{}') from found f
$$;

-- Locks up to p_most commands of a line that a worker may have. lost: as of pawl.claim_careful, for commands that are begun at once. bytes: how much
-- payload there is space for; c_bytes: nothing was taken so far, so the first one goes in any case. next: the position of the first one that is left.
create or replace function pawl.gate_pick (
  p_line bigint, p_low bigint, p_most integer, inout lost integer, inout bytes bigint, out tids tid[], out found_lost bigint[],
  out has_last boolean, out next bigint)
  language plpgsql
as $$
declare
  c_bytes constant bigint := 8 * 1024 * 1024;
  c_passed constant integer := 32; -- so many may be passed over
  v_row record;
  v_ids bigint[];
  v_count integer := 0;
  v_least integer := case when bytes = c_bytes then 1 else 0 end;
begin
  has_last := false;
  tids := '{}';
  for v_row in
    select r.ctid as tid, r.id, r.attempt + 1 >= r.max_attempts as is_last,
           r.attempt > 0 and exists (select from pawl.lost_attempt a where a.id = r.id and a.attempt = r.attempt) as is_lost
    from pawl.ready r where r.line = p_line and r.pos > p_low
    order by r.pos limit p_most + c_passed for update skip locked
  loop
    exit when v_count = p_most;
    continue when v_row.is_lost and (lost is null or v_row.is_last and lost > 0);
    v_count := v_count + 1;
    tids[v_count] := v_row.tid;
    v_ids[v_count] := v_row.id;
    has_last := has_last or v_row.is_last;
    if v_row.is_lost then
      found_lost := found_lost || v_row.id;
      lost := case when not v_row.is_last then lost + 1 end;
    end if;
  end loop;
  if v_count > 0 then
    select f.fitting, f.bytes into v_count, bytes from pawl.claim_fitting(v_ids, bytes) f;
    v_count := greatest(v_count, v_least);
    tids := tids[:v_count];
  end if;
  next := (select r.pos from pawl.ready r where r.line = p_line and r.pos > p_low and r.ctid <> all (tids) order by r.pos limit 1);
end
$$;

-- A turn of a line is over: it comes behind all others that wait for theirs, or ends when nothing is left in it.
create or replace function pawl.gate_turn (p_line bigint, p_next bigint, p_turn_at timestamptz)
  returns void
  language plpgsql
as $$
begin
  if p_next is null then
    delete from pawl.line l where l.id = p_line;
  else
    update pawl.line l set turn_at = p_turn_at, low = p_next - 1 where l.id = p_line;
  end if;
end
$$;

-- Commands of a line are taken: count them.
create or replace function pawl.gate_taken (
  p_domain_id integer, p_type text, p_key text, p_tids tid[], p_token bigint, p_now timestamptz, p_has_running boolean)
  returns void
  language plpgsql
as $$
begin
  if p_has_running then
    insert into pawl.slot (domain_id, id, token, type, limit_key)
    select p_domain_id, r.id, p_token, p_type, p_key from pawl.ready r where r.ctid = any (p_tids);
  end if;
  perform pawl.gate_used(p_domain_id, p_type, p_key, cardinality(p_tids), p_now);
end
$$;

-- Takes up to p_limit commands of these types from lines: of the highest priority first, and lines of the same take turns. The rows are locked, what
-- they use is written down under p_token. again_at: when something more may be taken, of what is held back; null: nothing is.
create or replace function pawl.gate_take (
  p_domain_id integer, p_types text[], p_limit integer, p_token bigint, p_now timestamptz, p_has_running boolean, inout lost integer,
  inout bytes bigint, out tids tid[], out found_lost bigint[], out has_last boolean, out again_at timestamptz)
  language plpgsql
as $$
declare
  c_visits_max constant integer := 200; -- lines that one claim visits
  v_types text[] := p_types;
  v_left integer := p_limit;
  v_before integer;
  v_turn timestamptz := p_now;
  v_visits integer := 0;
  v_line record;
  v_rest record;
  v_pick record;
  v_count integer;
begin
  tids := '{}';
  has_last := false;
  loop
    v_before := v_left;
    for v_line in
      select f.*, count(*) over () as count
      from (
        select l.*
        from unnest(v_types) t (type)
        cross join lateral (
          select l.id, l.type, l.limit_key, l.priority, l.low, l.turn_at
          from generate_series(9, 0, -1) p (priority)
          cross join lateral (
            select l.* from pawl.line l
            where l.domain_id = p_domain_id and l.type = t.type and l.priority = p.priority and l.turn_at <= v_turn
            order by l.turn_at limit v_left) l
          limit v_left) l
        order by l.priority desc, l.turn_at
        limit v_left) f
      order by f.priority desc, f.turn_at
    loop
      continue when v_line.type <> all (v_types);
      exit when v_left = 0 or v_visits = c_visits_max;
      v_visits := v_visits + 1;
      v_rest := pawl.gate_left(p_domain_id, v_line.type, v_line.limit_key, p_now);
      if v_rest.rest <= 0 and v_rest.is_key then
        update pawl.line l set turn_at = v_rest.at where l.id = v_line.id;
        again_at := least(again_at, nullif(v_rest.at, 'infinity'));
        v_before := v_left + 1; -- another line may have its turn
      elsif v_rest.rest <= 0 then
        v_types := array_remove(v_types, v_line.type);
        again_at := least(again_at, v_rest.at);
        v_before := v_left + 1;
      else
        v_count := least(v_rest.rest, v_left, greatest(v_left / v_line.count, 1));
        v_pick := pawl.gate_pick(v_line.id, v_line.low, v_count, lost, bytes);
        v_turn := v_turn + interval '1 us';
        perform pawl.gate_turn(v_line.id, v_pick.next, v_turn);
        v_count := cardinality(v_pick.tids);
        if v_count > 0 then
          perform pawl.gate_taken(p_domain_id, v_line.type, v_line.limit_key, v_pick.tids, p_token, p_now, p_has_running);
          tids := tids || v_pick.tids;
          found_lost := found_lost || v_pick.found_lost;
          has_last := has_last or v_pick.has_last;
          lost := v_pick.lost;
          bytes := v_pick.bytes;
          v_left := v_left - v_count;
        end if;
      end if;
    end loop;
    if v_visits = c_visits_max then
      again_at := p_now;
    end if;
    exit when v_left = 0 or v_left >= v_before or v_visits = c_visits_max or cardinality(v_types) = 0;
  end loop;
end
$$;

-- When a line of these types that waits for its time has it; null: none does.
create or replace function pawl.gate_next (p_domain_id integer, p_types text[], p_now timestamptz)
  returns timestamptz
  language sql stable
as $$
  select min(l.turn_at)
  from unnest(p_types) t (type)
  cross join lateral (
    select l.turn_at
    from generate_series(0, 9) p (priority)
    cross join lateral (
      select l.turn_at from pawl.line l
      where l.domain_id = p_domain_id and l.type = t.type and l.priority = p.priority and l.turn_at > p_now and l.turn_at < 'infinity'
      order by l.turn_at limit 1) l) l
$$;

-- The types that a pause or a limit is about, or that have lines; null: all are.
create or replace function pawl.gate_gated (p_domain_id integer, p_line_types text[])
  returns text[]
  language sql stable
as $$
  select case when bool_or(g.type = '*') is not true then coalesce(array_agg(distinct g.type), '{}') end
  from (select p.type from pawl.pause p where p.domain_id = p_domain_id
        union all select l.type from pawl.gate_limit l where l.domain_id = p_domain_id
        union all select unnest(p_line_types)) g (type)
$$;

-- A gate without pauses, limits and lines is of no use: claims do not find it any more.
create or replace function pawl.gate_end (p_domain_id integer)
  returns void
  language plpgsql
as $$
begin
  if exists (select from pawl.pause p where p.domain_id = p_domain_id) or exists (select from pawl.gate_limit l where l.domain_id = p_domain_id)
     or exists (select from pawl.line l where l.domain_id = p_domain_id) then
    return;
  end if;
  delete from pawl.slot s where s.domain_id = p_domain_id;
  delete from pawl.gate_use u where u.domain_id = p_domain_id and u.idle_at < pawl.now();
  delete from pawl.gate g where g.domain_id = p_domain_id;
end
$$;

-- Is there something that a claim could take now? Nothing is locked, so it may be too late. p_floors: ten positions, behind which the queue is read. null:
-- a pause holds back what is there, and it was not read.
create or replace function pawl.gate_ready (p_domain_id integer, p_types text[], p_floors bigint[])
  returns boolean
  language plpgsql stable
as $$
declare
  v_now timestamptz := pawl.now();
begin
  if exists (select from pawl.gate g where g.domain_id = p_domain_id and g.is_shut) then
    return null;
  end if;
  return exists (
      select from generate_series(0, 9) p (priority)
      cross join lateral (
        select from pawl.ready r
        where r.domain_id = p_domain_id and r.priority = p.priority and r.pos > p_floors[p.priority + 1] order by r.pos limit 1) r)
    or exists (
      select from unnest(pawl.gate_types(p_domain_id)) t (type)
      cross join lateral (
        select
        from generate_series(0, 9) p (priority)
        cross join lateral (
          (select from pawl.line l
           where l.domain_id = p_domain_id and l.type = t.type and l.priority = p.priority and l.turn_at <= v_now limit 1)
          union all
          (select from pawl.line l
           where l.domain_id = p_domain_id and l.type = t.type and l.priority = p.priority and l.turn_at = 'infinity' limit 1)) l
        limit 1) l
      where (p_types is null or t.type = any (p_types))
        and not exists (select from pawl.pause p where p.domain_id = p_domain_id and p.type = t.type));
end
$$;

-- What a claim of a domain with a gate takes. tids: rows of pawl.ready, which are locked. upto: for each priority, behind which position the next claim
-- may begin; null: it is not known. again_ms: after what time the next claim may find something that is held back; null: that is not known.
-- at: when those of lines begin. has_gate: false: the gate is gone, claim as ever.
create or replace function pawl.gate_find (
  p_domain_id integer, p_limit integer, p_after bigint[], p_types text[], p_begin integer, p_lost integer, p_token bigint,
  out has_gate boolean, out tids tid[], out lost bigint[], out has_last boolean, out at timestamptz, out upto bigint[], out again_ms integer)
  language plpgsql
as $$
#variable_conflict use_column
declare
  c_most constant integer := 100; -- commands of lines
  v_gate pawl.gate;
  v_now timestamptz := pawl.now();
  v_sorted record;
  v_types text[]; -- that have lines
  v_open text[];  -- that have none, and that the claim is for
  v_begin integer := least(coalesce(p_begin, p_limit), p_limit, c_most);
  v_taken record;
  v_found record;
  v_again_at timestamptz;
begin
  has_gate := true;
  tids := '{}';
  lost := '{}';
  has_last := false;
  if not pawl.gate_lock(p_domain_id) then
    has_gate := exists (select from pawl.gate g where g.domain_id = p_domain_id);
    again_ms := 10;
    return;
  end if;
  select * into v_gate from pawl.gate g where g.domain_id = p_domain_id;
  if v_gate.is_shut then
    return;
  end if;
  if v_gate.has_running then
    perform pawl.gate_reap(p_domain_id, v_now);
    if v_gate.adopt_until is not null then
      perform pawl.gate_adopt(p_domain_id, v_now);
    end if;
  end if;
  v_sorted := pawl.gate_sort(p_domain_id, p_after, pawl.gate_gated(p_domain_id, pawl.gate_types(p_domain_id)), p_types, p_limit, v_now);
  upto := v_sorted.upto;
  v_types := array(
    select t from unnest(pawl.gate_types(p_domain_id)) t
    where (p_types is null or t = any (p_types))
      and not exists (select from pawl.pause p where p.domain_id = p_domain_id and p.type = t));
  v_open := array(select distinct t from unnest(v_sorted.open) t where p_types is null or t = any (p_types));
  v_now := pawl.now(); -- whatever is in a line was sent before
  at := v_now;

  -- Types without pauses and limits share the places of the claim with those that have lines.
  v_taken := pawl.gate_take(
    p_domain_id, v_types, case when cardinality(v_open) > 0 then least(floor(p_limit / 2.0 + random())::integer, v_begin) else v_begin end,
    p_token, v_now, v_gate.has_running, p_lost, 8388608);
  tids := v_taken.tids;
  lost := lost || v_taken.found_lost;
  has_last := v_taken.has_last;
  v_again_at := v_taken.again_at;
  if cardinality(v_open) > 0 and cardinality(tids) < p_limit then
    v_found := pawl.claim_find(p_domain_id, p_limit - cardinality(tids), p_after, v_open, p_begin - cardinality(tids), v_taken.lost, v_sorted.read);
    if v_gate.has_running then
      insert into pawl.slot (domain_id, id, token, type, limit_key)
      select p_domain_id, r.id, p_token, c.type, pawl.limit_key(c.order_key)
      from pawl.ready r cross join lateral (select c.type, c.order_key from pawl.command c where c.id = r.id limit 1) c
      where r.ctid = any (v_found.tids);
    end if;
    tids := tids || v_found.tids;
    lost := lost || v_found.lost;
    has_last := has_last or v_found.has_last;
  end if;
  if cardinality(tids) = 0 then
    again_ms := case when v_sorted.is_cut then 0
                     else ceil(extract(epoch from least(v_again_at, pawl.gate_next(p_domain_id, v_types, v_now)) - v_now) * 1000) end;
    perform pawl.gate_end(p_domain_id);
  end if;
end
$$;

-- pawl.claim of a domain with a gate. After its commands it returns, for each priority, a row with a null id: in pos, behind which position the next claim
-- may begin; in token, after how many ms it may find something that is held back, -1 when that is not known. What comes from a line has the position 0.
create or replace function pawl.claim_gated (
  p_domain_id integer, p_limit integer, p_lease_ms integer, p_after bigint[], p_types text[], p_worker text, p_workers text[],
  p_begin integer, p_lost integer, p_unflushed boolean)
  returns table (id bigint, token bigint, command_id uuid, type text, payload jsonb, attempt smallint,
                 max_attempts smallint, priority smallint, pos bigint, progress jsonb, lost boolean)
  language plpgsql
as $$
#variable_conflict use_column
declare
  v_token bigint := pawl.lease_token();
  v_now timestamptz;
  v_found record;
begin
  v_found := pawl.gate_find(p_domain_id, p_limit, p_after, p_types, p_begin, p_lost, v_token);
  if cardinality(v_found.tids) > 0 then
    perform pawl.lease_commit(p_unflushed, v_found.has_last);
    v_now := pawl.now();
    return query
      with taken as (
        delete from pawl.ready r
        where r.ctid = any (v_found.tids)
        returning r.id, r.pos, r.priority, (r.attempt + 1)::smallint as attempt, r.max_attempts, r.extras, r.line
      ), known as materialized (
        select t.*, c.command_id, c.type, c.payload, c.priority as own
        from taken t cross join lateral (select c.* from pawl.command c where c.id = t.id limit 1) c
      ), numbered as (
        select k.*, row_number() over (order by k.own desc, k.pos) as number from known k
      ), leased as (
        insert into pawl.lease (id, token, until, domain_id, priority, attempt, max_attempts, extras, started_at, worker, lease_ms)
        select n.id, v_token, v_now + p_lease_ms * interval '1 ms', p_domain_id, n.own, n.attempt, n.max_attempts, n.extras,
               case when n.line is null then v_now else v_found.at end, -- rates count the latter
               case when p_workers is null then p_worker else p_workers[n.number] end, p_lease_ms
        from numbered n
      )
      select n.id, v_token, n.command_id, n.type, n.payload, n.attempt, n.max_attempts, n.own, case when n.line is null then n.pos else 0 end,
             g.progress, n.id = any (v_found.lost)
      from numbered n
      left join lateral (
        select pawl.progress_object(g.step, g.attempt, g.percent, g.text, g.at) as progress
        from pawl.progress g where g.id = n.id limit 1) g on true
      order by n.number;
  end if;
  for v_priority in 0..9 loop
    id := null;
    token := coalesce(v_found.again_ms, -1);
    priority := v_priority;
    pos := coalesce(v_found.upto[v_priority + 1], 0);
    return next;
  end loop;
end
$$;
