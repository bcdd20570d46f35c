-- lease.sql - the tokens of leases, and what a worker does with the leases that it has: hold and extend them.
--
-- Invariants: a token is random and belongs to one claim; settle, extend and release name it.
-- Lock order: leases by id, skipping locked ones; then notes of their extensions, skipping locked ones, or what pawl.finish locks.
-- Errors: QU001 arrays of different length, with nulls or of more than 10000 elements, lease out of range.

-- The token for the leases of one claim: random, so that it says nothing about the token of another claim, and a client that has none cannot find one
-- by trying. 53 bits, because it is a number in JSON, and clients that read those as doubles keep every digit.
create or replace function pawl.lease_token ()
  returns bigint
  language sql volatile
as $$
  -- The last 16 digits of a random UUID, whose 2 highest bits are fixed. One expression, so that it is inlined.
  select 1 + (('x' || translate(right(gen_random_uuid()::text, 17), '-', ''))::bit(64)::bigint & 4611686018427387903) % 9007199254740991
$$;

-- Raises unless the arrays name up to 10000 leases. A command may be named with several tokens: a lease that was lost and the one after it.
-- Number 0 is no command: it stands for those that the caller did not find.
create or replace function pawl.lease_check (p_ids bigint[], p_tokens bigint[])
  returns void
  language plpgsql immutable
as $$
begin
  perform pawl.array_check('ids', p_ids, cardinality(p_ids), 'QU001'),
          pawl.array_check('tokens', p_tokens, cardinality(p_ids), 'QU001');
  if cardinality(p_ids) > 10000 then
    raise exception 'ids must have at most 10000 elements, got %', cardinality(p_ids) using errcode = 'QU001';
  end if;
  if array_position(p_ids, null) is not null or array_position(p_tokens, null) is not null then
    raise exception 'ids and tokens must not contain null' using errcode = 'QU001';
  end if;
end
$$;

-- The one rule about the flush (ADR 42): the caller's transaction, which does nothing else with p_unflushed, commits without waiting for it, unless it
-- has a command in its last attempt or ends one. A crash of the server may undo the rest: a claim that never happened, a heartbeat that never came, a
-- release whose lease expires instead, which costs an attempt. p_must_last: a crash must not undo it; null: nothing was done.
create or replace function pawl.lease_commit (p_unflushed boolean, p_must_last boolean)
  returns void
  language plpgsql
as $$
begin
  if p_unflushed and p_must_last is not true then
    perform set_config('synchronous_commit', 'off', true);
  end if;
end
$$;

-- Locks the leases that the caller has under these tokens. One that another transaction has locked is skipped. A command whose cancellation
-- was asked for ends here. ords, ids, tids: of the leases that are locked; canceled: the items of commands that ended, by their ords. p_unflushed: as of
-- pawl.lease_commit.
create or replace function pawl.lease_hold (
  p_ids bigint[], p_tokens bigint[], p_unflushed boolean, out ords integer[], out ids bigint[], out tids tid[], out canceled integer[])
  language plpgsql
as $$
declare
  v_canceled bigint[];
  v_must_last boolean;
begin
  -- One index lookup per item, by lateral: a join could scan the leases first, with the dead entries of all that have ended.
  select array_agg(h.ord) filter (where not h.cancel), array_agg(h.id) filter (where not h.cancel),
         array_agg(h.tid) filter (where not h.cancel), array_agg(h.ord) filter (where h.cancel), array_agg(h.id) filter (where h.cancel),
         bool_or(h.cancel or h.is_last)
  into ords, ids, tids, canceled, v_canceled, v_must_last
  from (
    select i.ord::integer, i.id, l.tid, l.cancel, l.is_last
    from (select u.* from unnest(p_ids, p_tokens) with ordinality u (id, token, ord) order by u.id) i
    cross join lateral (
      select l.ctid as tid, l.cancel, l.attempt >= l.max_attempts as is_last
      from pawl.lease l where l.id = i.id and l.token = i.token for update skip locked) l
  ) h;
  perform pawl.lease_commit(p_unflushed, v_must_last);
  if v_canceled is not null then
    perform pawl.finish_canceled(v_canceled);
  end if;
end
$$;

-- Note the extensions of leases that another transaction has locked. p_done: the items that were extended or have ended. It waits for no lock: a note that
-- another transaction is writing is passed over, and one that it has not committed is not seen, so that a lease may have several.
create or replace function pawl.lease_extend_locked (p_ids bigint[], p_tokens bigint[], p_done integer[], p_now timestamptz, p_lease_ms integer)
  returns void
  language sql
as $$
  with item as materialized (
    select distinct on (u.id) u.id, u.token -- an item may be given twice
    from unnest(p_ids, p_tokens) with ordinality u (id, token, ord)
    cross join lateral (select from pawl.lease l where l.id = u.id and l.token = u.token limit 1) l
    where u.ord <> all (p_done)
    order by u.id
  ), held as materialized (
    select i.token, e.number
    from item i
    cross join lateral (select e.number from pawl.lease_extension e where e.id = i.id order by e.number for update skip locked) e
  ), noted as (
    update pawl.lease_extension e set token = h.token, until = p_now + p_lease_ms * interval '1 ms', lease_ms = p_lease_ms
    from held h
    where e.number = h.number
  )
  insert into pawl.lease_extension (id, token, until, lease_ms)
  select i.id, i.token, p_now + p_lease_ms * interval '1 ms', p_lease_ms
  from item i
  where not exists (select from pawl.lease_extension e where e.id = i.id)
$$;

-- Of leases that have expired and that the caller has locked, those that no heartbeat has extended meanwhile. The others get the time that was noted when
-- their rows were locked: their workers are alive. A note counts once, and for no longer than its length: the clock may have been ahead.
create or replace function pawl.lease_extended_late (p_ids bigint[], p_now timestamptz)
  returns bigint[]
  language plpgsql
as $$
declare
  v_kept bigint[];
begin
  if cardinality(p_ids) = 0 or not exists (select from pawl.lease_extension) then
    return p_ids;
  end if;
  with noted as (
    delete from pawl.lease_extension e
    where e.number = any (array(select e.number from pawl.lease_extension e where e.id = any (p_ids) for update skip locked))
    returning e.id, e.token, e.until, e.lease_ms
  ), latest as (
    select distinct on (n.id, n.token) n.* from noted n order by n.id, n.token, n.until desc
  ), kept as (
    update pawl.lease l
    set until = least(n.until, p_now + coalesce(n.lease_ms, l.lease_ms) * interval '1 ms'), lease_ms = coalesce(n.lease_ms, l.lease_ms)
    from latest n
    where l.id = n.id and l.token = n.token and n.until > p_now
    returning l.id
  )
  select array_agg(k.id) into v_kept from kept k;
  if v_kept is null then
    return p_ids;
  end if;
  return array(select i from unnest(p_ids) with ordinality u (i, ord) where i <> all (v_kept) order by u.ord);
end
$$;

-- Leases that end later than any that is given now: the clock was ahead when they were given or extended. They get their length from now on, and a worker
-- that lives extends them. What is less than a minute ahead is left: it passes. Returns how many, at most p_limit.
create or replace function pawl.lease_correct (p_limit integer, p_now timestamptz)
  returns integer
  language plpgsql
as $$
declare
  c_slack constant interval := interval '1 min';
  v_count integer;
begin
  update pawl.lease l set until = p_now + coalesce(l.lease_ms * interval '1 ms', least(l.until - l.started_at, interval '1 day'))
  where l.id = any (array(
    select l.id from pawl.lease l
    where l.until > p_now + c_slack and l.until > p_now + c_slack + coalesce(l.lease_ms * interval '1 ms', interval '1 day')
    order by l.until desc limit p_limit for update skip locked));
  get diagnostics v_count = row_count;
  delete from pawl.lease_extension e where e.number = any (array(
    select e.number from pawl.lease_extension e where e.until < p_now limit p_limit for update skip locked)); -- of no use any more
  return v_count;
end
$$;

-- The verdict of each item, by its position: p_done for those in p_kept, CANCELED for those in p_ended, LOST (another token, or no lease at all),
-- BUSY (another transaction has the lease locked, such as a pawl.cancel that is not committed yet: it is still the caller's).
create or replace function pawl.lease_verdicts (p_ids bigint[], p_tokens bigint[], p_kept integer[], p_done text, p_ended integer[])
  returns table (ord integer, verdict text)
  language sql stable
as $$
  -- By grouping, because row by row a join of two lists takes the square of their length.
  select v.ord::integer, coalesce(max(v.verdict), 'LOST')
  from (
    select k, p_done from unnest(p_kept) k
    union all
    select e, 'CANCELED' from unnest(p_ended) e
    union all
    select u.ord, 'BUSY' -- the lowest of them, so that an item which has ended is not called so
    from unnest(p_ids, p_tokens) with ordinality u (id, token, ord)
    cross join lateral (select from pawl.lease l where l.id = u.id and l.token = u.token limit 1) l
    where coalesce(cardinality(p_kept), 0) + coalesce(cardinality(p_ended), 0) < cardinality(p_ids)
    union all
    select n, null from generate_series(1, cardinality(p_ids)) n
  ) v (ord, verdict)
  group by v.ord
  order by v.ord
$$;

-- Keep what is still ours for longer. A command whose cancellation was asked for ends here: verdict CANCELED.
-- Verdicts: EXTENDED, CANCELED, LOST, BUSY (its extension is noted for pawl.requeue_due). p_unflushed: as of pawl.lease_commit.
-- Workers of all domains share its transaction, so it waits for no lock that an application can hold. If it meets a lock, it fails after 100 ms, and each item is tried apart.
create or replace function pawl.extend (p_ids bigint[], p_tokens bigint[], p_lease_ms integer, p_unflushed boolean default false)
  returns table (ord integer, verdict text)
  language plpgsql security definer set search_path = pawl, pg_temp set lock_timeout = '100ms'
  set plan = keyed_cached
as $$
#variable_conflict use_column
declare
  v_now timestamptz := pawl.now();
  v_kept integer[];
  v_tids tid[];
  v_ended integer[];
begin
  perform pawl.lease_check(p_ids, p_tokens);
  if (p_lease_ms between 100 and 86400000) is not true then
    raise exception 'lease must be from 100 to 86400000 ms' using errcode = 'QU001';
  end if;
  select h.ords, h.tids, h.canceled into v_kept, v_tids, v_ended from pawl.lease_hold(p_ids, p_tokens, p_unflushed) h;
  update pawl.lease l set until = v_now + p_lease_ms * interval '1 ms', lease_ms = p_lease_ms where l.ctid = any (v_tids);
  if coalesce(cardinality(v_kept), 0) + coalesce(cardinality(v_ended), 0) < cardinality(p_ids) then
    perform pawl.lease_extend_locked(p_ids, p_tokens, array(select unnest(v_kept || v_ended)), v_now, p_lease_ms);
  end if;
  return query select v.ord, v.verdict from pawl.lease_verdicts(p_ids, p_tokens, v_kept, 'EXTENDED', v_ended) v;
end
$$;
