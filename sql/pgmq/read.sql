-- read.sql - messages out: hide them for a while (read), or delete them (pop).
-- Invariant: two readers never get the same message while it is hidden; a reader skips messages that another has locked.
-- Lock order: messages by msg_id, skipping locked ones, so that readers never wait for each other.
-- Time is the wall clock, read once per call.
--
-- Which messages: the visible ones with the lowest ids. Neither index gives that alone: the primary key walks over every
-- hidden message at the front, the index on vt gives every visible one in another order. So a read takes up to five
-- steps, each over a bounded number of rows, and stops when it has enough:
--   1. by id, among the first twenty messages of the queue and the next 500 ids, ten more for each message wanted: what
--      other readers have hidden is at the front too, and walking over it costs less than another statement
--   2. by id, among the first 500 messages, ten more for each one wanted, wherever their ids are: for queues in which old
--      messages stay hidden far before the rest
--   3. by vt, a hundred more than wanted; if there are not that many, these are all, and they are taken by id
--   4. by id, among the first 5,000 messages
--   5. by vt: those that have been visible longest
-- The first four give exactly PGMQ's order. The fifth is reached only when more than a hundred too many are visible
-- behind 5,000 hidden ones: then messages come in the order in which they became visible, which for those never read nor
-- delayed is the order in which they were sent. A read with a condition has nothing to be bounded by, and leaves the
-- planner free to use an index on message, if someone made one.

-- The statements of the steps by id: lock up to $1 messages that are visible at $2 and select their ctids or ids. A ctid
-- spares a descent of the index; it names the version that this statement's snapshot sees, so it serves in this statement
-- only. Behind a busy reader the primary key begins with dead entries: it is walked once.

-- Step 1: $3 ids after the twentieth message. coalesce() keeps the index on vt, and what the planner believes to know of vt,
-- out of it: with outdated statistics it would fetch and sort everything that is visible.
create or replace function pgmq._window ()
  returns text
  language sql immutable
begin atomic
  select 'select t.ctid
          from (select min(q.msg_id), max(q.msg_id) from (select q.msg_id from pgmq.%1$I q order by q.msg_id limit 20) as q) as f
          cross join lateral (
            select q.ctid
            from pgmq.%1$I q
            where q.msg_id between f.min and f.max + $3 and coalesce(q.vt <= $2, false)
            order by q.msg_id
            limit $1
            for update skip locked
          ) as t'::text;
end;

-- Steps 2 and 4: among the first $3 messages. Lateral, so that only what is taken is locked and the walk ends with the last
-- one wanted.
create or replace function pgmq._front (p_what text)
  returns text
  language sql immutable
begin atomic
  select 'select t.' || p_what || '
          from (select q.ctid, q.vt from pgmq.%1$I q order by q.msg_id limit $3) as f
          cross join lateral (
            select q.ctid, q.msg_id from pgmq.%1$I q where q.ctid = f.ctid and q.vt <= $2 for update skip locked
          ) as t
          where f.vt <= $2
          limit $1';
end;

-- Lock up to p_qty of these messages, if they are visible, by id.
create or replace function pgmq._lock_visible (p_table text, p_ids bigint[], p_qty bigint, p_now timestamptz)
  returns bigint[]
  language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_ids bigint[];
begin
  execute format(
    'select array(
       select q.msg_id
       from pgmq.%I q
       where q.msg_id = any ($1) and q.vt <= $2
       order by q.msg_id
       limit $3
       for update skip locked)',
    p_table)
    into v_ids using p_ids, p_now, p_qty;
  return v_ids;
end
$$;

-- Lock up to p_qty visible messages and return their ids: steps 3 to 5, for a caller whose steps before found too few.
create or replace function pgmq._take (p_table text, p_qty integer, p_now timestamptz)
  returns bigint[]
  language plpgsql set search_path = pg_catalog, pg_temp set plan = unsorted
as $$
declare
  v_qty  bigint := coalesce(p_qty, 2147483647);
  v_some bigint := v_qty + 100;
  v_ids  bigint[];
  v_more bigint[];
begin
  execute format(
    'select array(
       select q.msg_id
       from pgmq.%I q
       where q.vt <= $1
       order by q.vt
       limit $2)',
    p_table)
    into v_more using p_now, v_some;
  if cardinality(v_more) < v_some then
    return pgmq._lock_visible(p_table, v_more, v_qty, p_now);
  end if;

  execute format('select array(' || pgmq._front('msg_id') || ')', p_table) into v_ids using v_qty, p_now, 5000::bigint;
  if cardinality(v_ids) >= v_qty then
    return v_ids;
  end if;

  execute format(
    'select array(
       select q.msg_id
       from pgmq.%I q
       where q.vt <= $1 and q.msg_id <> all ($3)
       order by q.vt
       limit $2
       for update skip locked)',
    p_table)
    into v_more using p_now, v_qty - cardinality(v_ids), v_ids;
  return v_ids || v_more;
end
$$;

-- The same for messages that contain p_conditional, in the order of their ids, wherever they are.
create or replace function pgmq._take_matching (p_table text, p_qty integer, p_now timestamptz, p_conditional jsonb)
  returns bigint[]
  language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_ids bigint[];
begin
  execute format(
    'select array(
       select q.msg_id
       from pgmq.%I q
       where q.vt <= $1 and q.message @> $2
       order by q.msg_id
       limit $3
       for update skip locked)',
    p_table)
    into v_ids using p_now, p_conditional, p_qty;
  return v_ids;
end
$$;

-- Hide messages that are locked already, and return them in the order of p_ids.
create or replace function pgmq._hide (p_table text, p_ids bigint[], p_now timestamptz, p_seconds integer)
  returns setof pgmq.message_record
  language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
  return query execute format(
    'with hidden as (
       update pgmq.%I q
       set vt = $2 + make_interval(secs => $3), read_ct = q.read_ct + 1, last_read_at = $2
       where q.msg_id = any ($1)
       returning q.msg_id, q.read_ct, q.enqueued_at, q.last_read_at, q.vt, q.message, q.headers
     )
     select h.*
     from unnest($1) with ordinality as i (msg_id, place)
     join hidden h on h.msg_id = i.msg_id
     order by i.place',
    p_table)
    using p_ids, p_now, p_seconds;
end
$$;

create or replace function pgmq.read (queue_name text, vt integer, qty integer, conditional jsonb default '{}')
  returns setof pgmq.message_record
  language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_now   timestamptz := clock_timestamp();
  v_queue text := pgmq.format_table_name(queue_name, 'q');
  v_step  text;
  v_more  integer;
  v_count integer := 0;
  v_ids   bigint[];
begin
  if conditional <> '{}' then
    v_ids := pgmq._take_matching(v_queue, qty, v_now, conditional);
  else
    -- Take and hide in one statement: all that most reads need. Not with vt 0, because what is not hidden would be found
    -- again by the next step.
    if vt > 0 then
      foreach v_step in array array[pgmq._window(), pgmq._front('ctid')] loop
        return query execute format(
          'update pgmq.%1$I q
           set vt = $2 + make_interval(secs => $4), read_ct = q.read_ct + 1, last_read_at = $2
           where q.ctid = any (array(' || v_step || '))
           returning q.msg_id, q.read_ct, q.enqueued_at, q.last_read_at, q.vt, q.message, q.headers',
          v_queue)
          using qty - v_count, v_now, coalesce(500 + 10 * qty::bigint, 1::bigint << 60), vt;
        get diagnostics v_more = row_count;
        v_count := v_count + v_more;
        if qty is null or v_count >= qty then
          return;
        end if;
      end loop;
    end if;
    v_ids := pgmq._take(v_queue, qty - v_count, v_now);
  end if;

  if v_ids <> '{}' then
    return query select h.* from pgmq._hide(v_queue, v_ids, v_now, vt) as h;
  end if;
end
$$;

-- Read until something came or the time is over; for ever if max_poll_seconds is NULL. Each read sees what was committed
-- meanwhile. p_manner: NULL for any messages, else as of pgmq._read_groups, which knows no condition.
create or replace function pgmq._read_with_poll (
  queue_name text, vt integer, qty integer, max_poll_seconds integer, poll_interval_ms integer, conditional jsonb, p_manner text)
  returns setof pgmq.message_record
  language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_until timestamptz := clock_timestamp() + make_interval(secs => max_poll_seconds);
begin
  while v_until is null or clock_timestamp() < v_until loop
    if p_manner is null then
      return query select r.* from pgmq.read(queue_name, vt, qty, conditional) as r;
    else
      return query select r.* from pgmq._read_groups(queue_name, vt, qty, p_manner) as r;
    end if;
    exit when found;
    perform pg_sleep(poll_interval_ms / 1000.0);
  end loop;
end
$$;

create or replace function pgmq.read_with_poll (
  queue_name text, vt integer, qty integer, max_poll_seconds integer default 5, poll_interval_ms integer default 100,
  conditional jsonb default '{}')
  returns setof pgmq.message_record
  language sql
begin atomic
  select * from pgmq._read_with_poll(queue_name, vt, qty, max_poll_seconds, poll_interval_ms, conditional, null);
end;

create or replace function pgmq.pop (queue_name text, qty integer default 1)
  returns setof pgmq.message_record
  language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_now   timestamptz := clock_timestamp();
  v_queue text := pgmq.format_table_name(queue_name, 'q');
  v_pop   text := 'with gone as (
                     delete from pgmq.%1$I q
                     where %2$s
                     returning q.msg_id, q.read_ct, q.enqueued_at, q.last_read_at, q.vt, q.message, q.headers
                   )
                   select g.* from gone g order by g.msg_id';
  v_count integer;
begin
  return query execute format(v_pop, v_queue, format('q.ctid = any (array(' || pgmq._window() || '))', v_queue))
    using qty, v_now, coalesce(500 + 10 * qty::bigint, 1::bigint << 60);
  get diagnostics v_count = row_count;
  if v_count < qty then
    return query execute format(v_pop, v_queue, 'q.msg_id = any ($1)')
      using pgmq._take(v_queue, qty - v_count, v_now);
  end if;
end
$$;
