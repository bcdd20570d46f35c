-- order.sql - order keys: commands of one domain with the same key run one at a time, in the order of sending.
--
-- A sender only inserts (pawl.ready names the key) and reads nothing about the key, so it waits for no other transaction. A send that starts its
-- command takes the free key as a claim would (send_start.sql). A claim that finds
-- such a row admits it: if the key is free, its first command gets it; all others are moved to pawl.parked. From then on the command that has
-- the key is an ordinary one: it is leased, retried, delayed, rescued and released without reading the key. Its end passes the key on
-- to the first parked command, in the same transaction.
--
-- Invariants, of each key:
--   1. At most one command has it: the row of pawl.order_turn names it. Only that one is leased or delayed.
--   2. While commands are parked, the key has a row in pawl.order_turn.
--   3. A command is parked only together with, or after, every command of the key with a smaller id that a snapshot of that moment shows. So
--      the smallest id that is parked was sent before, or at the same time as, all others; and what is still in pawl.ready was sent later, or
--      at the same time.
-- Two commands are sent at the same time when neither of their transactions had committed before the other one allocated its id; they
-- run in either order.
--
-- Locks: a transaction that parks a command, or passes the key on, has locked the key's row in pawl.order_turn until it commits. A claim skips keys that are
-- locked, and leaves their commands in pawl.ready for a later claim. A transaction that ends the command that has the key waits for its
-- lock, 10 ms for each of three keys and 1 ms for each further one; what it cannot lock it leaves to pawl.order_resume, which
-- pawl.requeue_due calls. Two transactions never end the same command, so they never wait for each other's keys.
-- Lock order: rows of commands by id, keys by (domain, key), the first parked row of each (skipped when locked).
-- A claim, or a send that starts its command, waits in one case only: another one that has not committed has given the same key to a command that
-- was sent at the same time as ours. Then it waits for 10 ms.
-- Errors: none of its own.

-- Lock keys one by one, each for a bounded time. p_is_free: they are free, and are given to these commands; else these commands have them.
-- Returns the commands whose keys were locked.
create or replace function pawl.order_wait (p_domains integer[], p_keys text[], p_ids bigint[], p_is_free boolean)
  returns bigint[]
  language plpgsql
as $$
declare
  v_lock_timeout text := current_setting('lock_timeout');
  v_waits integer := 0;
  v_locked bigint[] := '{}'::bigint[];
  v_item record;
begin
  for v_item in
    select u.domain_id, u.key, u.id from unnest(p_domains, p_keys, p_ids) u (domain_id, key, id) order by u.domain_id, u.key
  loop
    begin
      perform set_config('lock_timeout', case when v_waits < 3 then '10ms' else '1ms' end, true);
      if p_is_free then
        insert into pawl.order_turn (domain_id, order_key, id, low) values (v_item.domain_id, v_item.key, v_item.id, v_item.id)
        on conflict (domain_id, order_key) do nothing;
      else
        perform from pawl.order_turn t
        where t.domain_id = v_item.domain_id and t.order_key = v_item.key and t.id = v_item.id
        for update;
      end if;
      if found then
        v_locked := v_locked || v_item.id;
      end if;
    exception when lock_not_available then
      v_waits := v_waits + 1;
    end;
  end loop;
  perform set_config('lock_timeout', v_lock_timeout, true);
  return v_locked;
end
$$;

-- Give free keys to their first commands. Returns the commands whose keys were free. p_ids: a command per key, whose row in pawl.ready is
-- locked.
create or replace function pawl.order_open (p_domain_id integer, p_keys text[], p_ids bigint[])
  returns bigint[]
  language plpgsql
as $$
declare
  v_lock_timeout text := current_setting('lock_timeout');
  v_opened bigint[];
begin
  begin
    perform set_config('lock_timeout', '10ms', true);
    with opened as (
      insert into pawl.order_turn (domain_id, order_key, id, low)
      select p_domain_id, u.key, u.id, u.id from unnest(p_keys, p_ids) u (key, id) order by u.key
      on conflict (domain_id, order_key) do nothing
      returning id
    )
    select coalesce(array_agg(o.id), '{}') into v_opened from opened o;
    perform set_config('lock_timeout', v_lock_timeout, true);
    return v_opened;
  exception when lock_not_available then
    return pawl.order_wait(array_fill(p_domain_id, array[cardinality(p_keys)]), p_keys, p_ids, true);
  end;
end
$$;

-- Queue commands that have got their keys and were taken from pawl.parked or pawl.ready: those that are delayed until their time, the
-- others now. Returns how many. The clock is read under the allocation lock: see pawl.requeue_due.
create or replace function pawl.order_queue (p_ids bigint[])
  returns bigint
  language plpgsql
as $$
declare
  v_now timestamptz;
  v_count bigint;
begin
  perform pawl.command_allocation_lock();
  v_now := pawl.now();
  with item as materialized (
    select c.id, c.domain_id, c.priority, c.max_attempts, c.due_at from pawl.command c where c.id = any (p_ids)
  ), later as (
    insert into pawl.delayed (id, due, domain_id, priority, attempt, max_attempts, extras)
    select i.id, i.due_at, i.domain_id, i.priority, 0, i.max_attempts, true from item i where i.due_at > v_now
    returning 1
  ), queued as (
    insert into pawl.ready (domain_id, priority, pos, id, attempt, max_attempts, extras)
    select i.domain_id, i.priority, nextval('pawl.command_seq'), i.id, 0, i.max_attempts, true
    from item i where (i.due_at > v_now) is not true
    returning 1
  )
  select (select count(*) from later) + (select count(*) from queued) into v_count;
  return v_count;
end
$$;

-- Of commands with keys that a claim has found: give at most p_limit of the keys that are free to their first commands. keys, ids: which to
-- which.
-- The first command that can be seen, not the first that was found: priorities and cursors do not count within a key. If another
-- transaction has it locked, that one gives it the key, or cancels it.
create or replace function pawl.order_give (
  p_domain_id integer, p_keys text[], p_limit integer, out keys text[], out ids bigint[])
  language plpgsql
as $$
declare
  v_opened bigint[];
begin
  select array_agg(f.key), array_agg(f.id) into keys, ids
  from (
    select k.key, r.id
    from (
      select g.key
      from (select u.key, min(u.ord) as ord from unnest(p_keys) with ordinality u (key, ord) group by u.key) g
      left join lateral (
        select true as is_held from pawl.order_turn t where t.domain_id = p_domain_id and t.order_key = g.key limit 1) t on true
      where t.is_held is null
      order by g.ord limit greatest(p_limit, 0)
    ) k
    cross join lateral (
      select r.id from pawl.ready r where r.domain_id = p_domain_id and r.order_key = k.key order by r.id limit 1) r
    cross join lateral (
      select 1 from pawl.ready l
      where l.domain_id = p_domain_id and l.order_key = k.key and l.id = r.id
      for update skip locked) l
  ) f;
  if keys is null then
    return;
  end if;
  v_opened := pawl.order_open(p_domain_id, keys, ids);
  if cardinality(v_opened) < cardinality(ids) then
    select array_agg(u.key), array_agg(u.id) into keys, ids
    from unnest(keys, ids) u (key, id) where u.id = any (v_opened);
  end if;
end
$$;

-- Commands that have got their keys before they are due wait for their time in pawl.delayed. Returns those.
create or replace function pawl.order_delay (p_domain_id integer, p_keys text[], p_holders bigint[])
  returns bigint[]
  language plpgsql
as $$
declare
  v_early bigint[] := array(
    select c.id from unnest(p_holders) h (id)
    cross join lateral (select c.id from pawl.command c where c.id = h.id and c.due_at > pawl.now() limit 1) c);
begin
  if cardinality(v_early) > 0 then
    with taken as (
      delete from pawl.ready r
      where r.domain_id = p_domain_id and r.order_key = any (p_keys) and r.id = any (v_early)
      returning r.id
    )
    select array_agg(t.id) into v_early from taken t;
    perform pawl.moved(coalesce(cardinality(v_early), 0), pawl.order_queue(v_early));
  end if;
  return v_early;
end
$$;

-- Park commands of keys that are locked: those that a claim has found (p_ids), and all of the same key before them, at most 1000 of a key, up to
-- one that another transaction has locked. p_held: the keys, p_holders: the commands that have them.
create or replace function pawl.order_park (p_domain_id integer, p_ids bigint[], p_keys text[], p_held text[], p_holders bigint[])
  returns void
  language plpgsql
as $$
declare
  v_tids tid[];
  v_keys text[];
  v_ids bigint[];
  v_deleted bigint;
  v_inserted bigint;
begin
  -- By grouping, because row by row a join of two lists takes the square of their length.
  with park as materialized (
    select g.key, g.holder, g.last
    from (
      select v.key, max(v.holder) as holder, max(v.id) as last
      from (select u.key, u.id, null::bigint from unnest(p_ids, p_keys) u (id, key)
            union all
            select h.key, null, h.id from unnest(p_held, p_holders) h (key, id)) v (key, id, holder)
      group by v.key
    ) g
    where g.holder is not null and g.last is not null
  ), listed as materialized (
    select p.key, r.id, l.tid
    from park p
    cross join lateral (
      select r.id from pawl.ready r
      where r.domain_id = p_domain_id and r.order_key = p.key and r.id <= p.last and r.id <> p.holder
      order by r.id limit 1000) r
    left join lateral (
      select l.ctid as tid from pawl.ready l
      where l.domain_id = p_domain_id and l.order_key = p.key and l.id = r.id
      for update skip locked) l on true
  )
  select array_agg(f.tid), array_agg(f.key), array_agg(f.id) into v_tids, v_keys, v_ids
  from (select l.*, bool_and(l.tid is not null) over (partition by l.key order by l.id) as has_all_before from listed l) f
  where f.has_all_before;
  if v_tids is null then
    return;
  end if;
  with taken as (
    delete from pawl.ready r where r.ctid = any (v_tids) returning r.order_key, r.id
  ), kept as (
    insert into pawl.parked (domain_id, order_key, id) select p_domain_id, t.order_key, t.id from taken t returning 1
  )
  select (select count(*) from taken), (select count(*) from kept) into v_deleted, v_inserted;
  perform pawl.moved(v_deleted, v_inserted);
  update pawl.order_turn t set low = m.id - 1
  from (select k.tid, g.id
        from (select u.key, min(u.id) as id from unnest(v_keys, v_ids) u (key, id) group by u.key) g
        cross join lateral (
          select k.ctid as tid from pawl.order_turn k
          where k.domain_id = p_domain_id and k.order_key = g.key and k.low >= g.id limit 1) k) m
  where t.ctid = m.tid;
end
$$;

-- Commands with keys that a claim has found and locked in pawl.ready. Returns the ids of commands that have their keys and may be leased, in
-- no order; some may not be among p_ids. Gives at most p_limit free keys to commands. The others are parked if their key can be locked, or
-- else left where they are.
create or replace function pawl.order_admit (p_domain_id integer, p_ids bigint[], p_keys text[], p_limit integer)
  returns bigint[]
  language plpgsql
as $$
declare
  v_held text[];      -- keys that commands have, locked by this transaction
  v_holders bigint[]; -- those commands; 0: it has ended
  v_given text[];     -- keys that were free
  v_firsts bigint[];  -- their first commands
  v_early bigint[];
begin
  select array_agg(k.key), array_agg(case when exists (select from pawl.order_handover h where h.id = t.id) then 0 else t.id end)
  into v_held, v_holders
  from (select distinct u.key from unnest(p_keys) u (key) order by u.key) k
  cross join lateral (
    select t.id from pawl.order_turn t where t.domain_id = p_domain_id and t.order_key = k.key for update skip locked) t;
  select g.keys, g.ids into v_given, v_firsts from pawl.order_give(p_domain_id, p_keys, p_limit) g;
  v_held := v_held || v_given;
  v_holders := v_holders || v_firsts;
  if v_held is null then
    return '{}'::bigint[];
  end if;
  v_early := pawl.order_delay(p_domain_id, v_held, v_holders);
  perform pawl.order_park(p_domain_id, p_ids, p_keys, v_held, v_holders);
  return array(select h.id from unnest(v_holders) h (id) except select e.id from unnest(v_early) e (id));
end
$$;

-- Lock the keys that commands have, in the order of the arguments, and those that other transactions have locked for a bounded time.
-- What cannot be locked is left to pawl.order_resume. The arguments without those; null: none is left.
create or replace function pawl.order_lock (inout domains integer[], inout keys text[], inout ids bigint[])
  language plpgsql
as $$
declare
  v_locked bigint[] := array(
    select t.id from unnest(domains, keys, ids) k (domain_id, key, id)
    cross join lateral (
      select t.id from pawl.order_turn t
      where t.domain_id = k.domain_id and t.order_key = k.key and t.id = k.id
      for update skip locked) t);
begin
  if cardinality(v_locked) = cardinality(ids) then
    return;
  end if;
  select v_locked || pawl.order_wait(array_agg(k.domain_id), array_agg(k.key), array_agg(k.id), false) into v_locked
  from unnest(domains, keys, ids) k (domain_id, key, id) where k.id <> all (v_locked);
  insert into pawl.order_handover (domain_id, id)
  select k.domain_id, k.id from unnest(domains, ids) k (domain_id, id) where k.id <> all (v_locked);
  select array_agg(k.domain_id), array_agg(k.key), array_agg(k.id) into domains, keys, ids
  from unnest(domains, keys, ids) k (domain_id, key, id) where k.id = any (v_locked);
end
$$;

-- Pass keys on to parked commands and queue those. p_turns, p_tids: their rows in pawl.order_turn and pawl.parked, which are locked.
create or replace function pawl.order_pass (p_turns tid[], p_tids tid[], p_ids bigint[])
  returns void
  language plpgsql
as $$
declare
  v_taken bigint;
  v_turned bigint;
begin
  with taken as (
    delete from pawl.parked p where p.ctid = any (p_tids) returning 1
  )
  select count(*) into v_taken from taken;
  perform pawl.moved(v_taken, pawl.order_queue(p_ids));
  update pawl.order_turn t set id = n.id, low = n.id
  from unnest(p_turns, p_ids) n (tid, id) where t.ctid = n.tid;
  get diagnostics v_turned = row_count;
  perform pawl.moved(v_taken, v_turned);
end
$$;

-- Pass on the keys of commands that have ended, or that release their keys: to the first parked command, or to none. Commands that have no
-- key are passed over. Called when all rows of these commands are locked, and before pawl.after_end.
create or replace function pawl.order_advance (p_ids bigint[])
  returns void
  language plpgsql security definer set search_path = pawl, pg_temp
  set plan = keyed_cached
as $$
declare
  v_domains integer[];
  v_keys text[];
  v_ids bigint[];
  v_tids tid[];
  v_next bigint[];
  v_next_turns tid[];
  v_last_turns tid[]; -- of keys of which none is parked
  v_last bigint[];
  v_blocked bigint[];
begin
  select array_agg(t.domain_id), array_agg(t.order_key), array_agg(t.id) into v_domains, v_keys, v_ids
  from (select c.domain_id, c.order_key, c.id from pawl.command c
        where c.id = any (p_ids) and c.order_key is not null order by c.domain_id, c.order_key) c
  cross join lateral (
    select t.domain_id, t.order_key, t.id from pawl.order_turn t
    where t.domain_id = c.domain_id and t.order_key = c.order_key and t.id = c.id limit 1) t;
  if v_keys is null then
    return;
  end if;
  select l.domains, l.keys, l.ids into v_domains, v_keys, v_ids from pawl.order_lock(v_domains, v_keys, v_ids) l;
  if v_ids is null then
    return;
  end if;

  -- A new statement, whose snapshot shows all that was parked before the key was locked. The first one, and no other, is next: if
  -- another transaction has it locked, it is decided by that one whether there is such a command.
  select array_agg(l.tid) filter (where l.tid is not null), array_agg(n.id) filter (where l.tid is not null),
         array_agg(t.tid) filter (where l.tid is not null), array_agg(t.tid) filter (where n.id is null),
         array_agg(k.id) filter (where n.id is null), array_agg(k.id) filter (where n.id is not null and l.tid is null)
  into v_tids, v_next, v_next_turns, v_last_turns, v_last, v_blocked
  from unnest(v_domains, v_keys, v_ids) k (domain_id, key, id)
  cross join lateral (
    select t.ctid as tid, t.low from pawl.order_turn t where t.domain_id = k.domain_id and t.order_key = k.key limit 1) t
  left join lateral (
    select p.id from pawl.parked p
    where p.domain_id = k.domain_id and p.order_key = k.key and p.id > t.low
    order by p.id limit 1) n on true
  left join lateral (
    select p.ctid as tid from pawl.parked p
    where p.domain_id = k.domain_id and p.order_key = k.key and p.id = n.id
    for update skip locked) l on true;
  if v_tids is not null then
    perform pawl.order_pass(v_next_turns, v_tids, v_next);
  end if;
  -- An old snapshot does not show what was parked since.
  if v_last is not null and current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
    v_blocked := v_blocked || v_last;
    v_last := null;
  end if;
  if v_last is not null then
    delete from pawl.order_turn t where t.ctid = any (v_last_turns);
  end if;
  if v_blocked is not null then
    insert into pawl.order_handover (domain_id, id)
    select c.domain_id, c.id from pawl.command c where c.id = any (v_blocked);
  end if;
  perform pawl.wake_later(v_domains);
end
$$;

-- Pass on up to p_limit keys that were left to it. One that still cannot be passed on is tried again after the others. Returns how many it
-- read.
create or replace function pawl.order_resume (p_limit integer)
  returns integer
  language plpgsql security definer set search_path = pawl, pg_temp
  set plan = ordered
as $$
declare
  v_ids bigint[];
begin
  with taken as (
    delete from pawl.order_handover h
    where h.number = any (array(
      select h.number from pawl.order_handover h order by h.number limit p_limit for update skip locked))
    returning h.id
  )
  select array_agg(t.id) into v_ids from taken t;
  if v_ids is not null then
    perform pawl.order_advance(v_ids);
  end if;
  return coalesce(cardinality(v_ids), 0);
end
$$;

-- Does a command of this domain and type release its key while it is in the troubleshooting queue? Else it holds it.
create or replace function pawl.order_is_released (p_domain_id integer, p_type text)
  returns boolean
  language sql stable
as $$
  select coalesce(
    (select r.order_key from pawl.retry_policy r where r.domain_id = p_domain_id and r.type = p_type),
    (select r.order_key from pawl.retry_policy r where r.domain_id = p_domain_id and r.type = '*'),
    'hold') = 'release'
$$;

-- Commands were moved to the troubleshooting queue: pass on the keys of those that release them.
create or replace function pawl.order_release (p_ids bigint[])
  returns void
  language plpgsql
as $$
declare
  v_released bigint[] := array(
    select c.id from pawl.command c
    where c.id = any (p_ids) and c.order_key is not null and pawl.order_is_released(c.domain_id, c.type));
begin
  if cardinality(v_released) > 0 then
    perform pawl.order_advance(v_released);
  end if;
end
$$;

-- The key under which a command has to be queued when it leaves the troubleshooting queue; null: none, or it has kept its key.
create or replace function pawl.order_key_again (p_domain_id integer, p_order_key text, p_id bigint)
  returns text
  language sql stable
as $$
  select case when p_order_key is not null
                and not exists (select from pawl.order_turn t
                                where t.domain_id = p_domain_id and t.order_key = p_order_key and t.id = p_id
                                  and not exists (select from pawl.order_handover h where h.id = p_id)) then p_order_key end
$$;

-- The command that has the key for which another one waits; null: it waits for none.
create or replace function pawl.order_waits_for (p_domain_id integer, p_order_key text, p_id bigint)
  returns uuid
  language sql stable
as $$
  select c.command_id
  from pawl.order_turn t
  join pawl.command c on c.id = t.id
  where t.domain_id = p_domain_id and t.order_key = p_order_key and t.id <> p_id
    and (exists (select from pawl.parked p where p.domain_id = p_domain_id and p.order_key = p_order_key and p.id = p_id)
         or exists (select from pawl.ready r where r.domain_id = p_domain_id and r.order_key = p_order_key and r.id = p_id))
$$;
