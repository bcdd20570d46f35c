-- read.sql - messages out: hide them for a while (read), or take them away (pop).
-- Invariant: two readers never get the same message while it is hidden; a reader skips what another is just taking.
-- Lock order: messages by msg_id, skipping locked ones, so that readers never wait for each other.
-- Time is the wall clock, read once per call.
--
-- Which messages: the visible ones with the lowest ids. Neither index gives that alone: the primary key walks over every
-- hidden message at the front, the index on vt gives every visible one in another order. So a read looks up to four
-- times, each time at a bounded number of rows, and stops when it has enough:
--   1. by id, among the first messages of the queue, a hundred more than wanted
--   2. by vt, a hundred more than wanted; if there are not that many, these are all, and they are taken by id
--   3. by id, among the first 5,000 messages
--   4. by vt: those that have been visible longest
-- The first three give exactly PGMQ's order. The fourth is reached only when more than a hundred too many are visible
-- behind 5,000 hidden ones: then messages come in the order in which they became visible, which for those never read nor
-- delayed is the order in which they were sent. A read with a condition has nothing to be bounded by, and leaves the
-- planner free to use an index on message, if someone made one.

-- Lock up to p_qty visible ones among the first p_front messages. Lateral, so that only what is taken is locked and the
-- walk ends with the last one wanted.
create or replace function pgmq._take_front (p_table text, p_qty bigint, p_now timestamptz, p_front bigint)
  returns bigint[]
  language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_ids bigint[];
begin
  execute format(
    'select array(
       select taken.msg_id
       from (select q.msg_id, q.vt from pgmq.%1$I q order by q.msg_id limit $3) as front
       cross join lateral (
         select q.msg_id
         from pgmq.%1$I q
         where q.msg_id = front.msg_id and q.vt <= $1
         for update skip locked
       ) as taken
       where front.vt <= $1
       limit $2)',
    p_table)
    into v_ids using p_now, p_qty, p_front;
  return v_ids;
end
$$;

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

-- Lock up to p_qty visible messages and return their ids.
-- Sorting is off so that an outdated statistic cannot turn a bounded walk into a sort of the whole table.
create or replace function pgmq._take (p_table text, p_qty integer, p_now timestamptz)
  returns bigint[]
  language plpgsql set search_path = pg_catalog, pg_temp set enable_sort = off
as $$
declare
  v_qty  bigint := coalesce(p_qty, 2147483647);
  v_some bigint := v_qty + 100;
  v_ids  bigint[];
  v_more bigint[];
begin
  v_ids := pgmq._take_front(p_table, v_qty, p_now, v_some);
  if cardinality(v_ids) >= v_qty then
    return v_ids;
  end if;

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

  v_ids := pgmq._take_front(p_table, v_qty, p_now, 5000);
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
  v_count integer := 0;
  v_ids   bigint[];
begin
  if conditional <> '{}' then
    v_ids := pgmq._take_matching(v_queue, qty, v_now, conditional);
  else
    -- Take and hide among the first ids in one statement: all that most reads need. Not with vt 0, because what is not
    -- hidden would be found again by _take().
    if vt > 0 then
      return query execute format(
        'with hidden as (
           update pgmq.%1$I q
           set vt = $2 + make_interval(secs => $3), read_ct = q.read_ct + 1, last_read_at = $2
           where q.msg_id = any (array(
             select taken.msg_id
             from (select f.msg_id, f.vt from pgmq.%1$I f order by f.msg_id limit $1 + 100) as front
             cross join lateral (
               select t.msg_id from pgmq.%1$I t where t.msg_id = front.msg_id and t.vt <= $2 for update skip locked
             ) as taken
             where front.vt <= $2
             limit $1))
           returning q.msg_id, q.read_ct, q.enqueued_at, q.last_read_at, q.vt, q.message, q.headers
         )
         select h.* from hidden h order by h.msg_id',
        v_queue)
        using qty, v_now, vt;
      get diagnostics v_count = row_count;
      if v_count >= qty then
        return;
      end if;
    end if;
    v_ids := pgmq._take(v_queue, qty - v_count, v_now);
  end if;

  if v_ids <> '{}' then
    return query select h.* from pgmq._hide(v_queue, v_ids, v_now, vt) as h;
  end if;
end
$$;

-- Look until something came or the time is over. Each look sees what was committed meanwhile.
create or replace function pgmq.read_with_poll (
  queue_name text, vt integer, qty integer, max_poll_seconds integer default 5, poll_interval_ms integer default 100,
  conditional jsonb default '{}')
  returns setof pgmq.message_record
  language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_until timestamptz := clock_timestamp() + make_interval(secs => max_poll_seconds);
begin
  while clock_timestamp() < v_until loop
    return query select r.* from pgmq.read(queue_name, vt, qty, conditional) as r;
    exit when found;
    perform pg_sleep(poll_interval_ms / 1000.0);
  end loop;
end
$$;

create or replace function pgmq.pop (queue_name text, qty integer default 1)
  returns setof pgmq.message_record
  language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_queue text := pgmq.format_table_name(queue_name, 'q');
begin
  return query execute format(
    'with gone as (
       delete from pgmq.%I q
       where q.msg_id = any ($1)
       returning q.msg_id, q.read_ct, q.enqueued_at, q.last_read_at, q.vt, q.message, q.headers
     )
     select g.*
     from gone g
     order by g.msg_id',
    v_queue)
    using pgmq._take(v_queue, qty, clock_timestamp());
end
$$;
