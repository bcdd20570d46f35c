-- group.sql - reading in order: messages with the same header x-pgmq-group come one after the other.
-- Messages without that header are one group together. A group's head is its oldest message, visible or not.
-- Invariants
--   1. A group whose head is hidden gives nothing: someone works on it, or it is not yet time.
--   2. Nothing is given out past a hidden message of its group.
--   3. Who reads from a group has locked its head; others skip the group until the reader's transaction ends.
-- Lock order: heads by msg_id, then their followers, skipping locked ones.
--
-- Heads are looked for at the front of the queue, in a stretch that grows until it holds enough groups: every group's
-- first message there is its head, because nothing comes before the front. Only where the groups are too few to fill a
-- batch does that end in reading the whole queue, and not even then after pgmq.create_fifo_index(): its second index
-- (group, msg_id) gives the heads by jumping from group to group, and a group's followers without reading others'.

-- The group of a message. The index of queue.sql and the statements below must say it in the same words.
create or replace function pgmq._group_of ()
  returns text
  language sql immutable
begin atomic
  select 'coalesce(q.headers ->> ''x-pgmq-group'', ''_default_fifo_group'')'::text;
end;

create or replace function pgmq._has_group_index (p_table text)
  returns boolean
  language sql stable
begin atomic
  select to_regclass(format('pgmq.%I', p_table || '_group_idx')) is not null;
end;

-- All heads by index, or null if there are more than p_max groups: then the front of the queue is the better place.
create or replace function pgmq._heads_by_index (p_table text, p_max bigint)
  returns bigint[]
  language plpgsql set search_path = pg_catalog, pg_temp set plan = unsorted_index
as $$
declare
  v_ids bigint[];
begin
  execute format(
    'with recursive head as (
       (select q.msg_id, %2$s as grp from pgmq.%1$I q order by %2$s, q.msg_id limit 1)
       union all
       select next.msg_id, next.grp
       from head h
       cross join lateral (
         select q.msg_id, %2$s as grp from pgmq.%1$I q where %2$s > h.grp order by %2$s, q.msg_id limit 1
       ) as next
     )
     select array(select h.msg_id from head h limit $1)',
    p_table, pgmq._group_of())
    into v_ids using p_max + 1;
  return case when cardinality(v_ids) <= p_max then v_ids end;
end
$$;

-- The heads among the first p_front messages, and whether these are all there are.
create or replace function pgmq._heads_at_front (p_table text, p_front bigint, out heads bigint[], out is_all boolean)
  language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
  execute format(
    'select array_agg(g.head), coalesce(sum(g.size), 0) < $1
     from (
       select min(f.msg_id) as head, count(*) as size
       from (select q.msg_id, %2$s as grp from pgmq.%1$I q order by q.msg_id limit $1) as f
       group by f.grp
     ) as g',
    p_table, pgmq._group_of())
    into heads, is_all using p_front;
end
$$;

-- Lock up to p_qty visible heads, oldest first.
create or replace function pgmq._take_heads (p_table text, p_qty bigint, p_now timestamptz)
  returns bigint[]
  language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_front  bigint := 1000 + 10 * p_qty;
  v_heads  bigint[];
  v_is_all boolean;
  v_taken  bigint[];
begin
  if pgmq._has_group_index(p_table) then
    v_heads := pgmq._heads_by_index(p_table, 200 + p_qty);
    if v_heads is not null then
      return pgmq._lock_visible(p_table, v_heads, p_qty, p_now);
    end if;
  end if;

  loop
    select f.heads, f.is_all into v_heads, v_is_all from pgmq._heads_at_front(p_table, v_front) as f;
    v_taken := pgmq._lock_visible(p_table, v_heads, p_qty, p_now);
    exit when v_is_all or cardinality(v_taken) >= p_qty;
    v_front := v_front * 10;
  end loop;
  return v_taken;
end
$$;

-- Fill the batch from the groups of the heads we hold: group by group, or (p_in_turn) one message of each in turn.
create or replace function pgmq._take_followers (
  p_table text, p_heads bigint[], p_qty bigint, p_now timestamptz, p_in_turn boolean)
  returns bigint[]
  language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_source text := 'select h.msg_id as head, q.msg_id, q.vt from head h join pgmq.%1$I q on %2$s = h.grp';
  v_order  text := case when p_in_turn then 'r.place, r.head' else 'r.head, r.place' end;
  v_ids    bigint[];
  v_locked bigint[];
begin
  if pgmq._has_group_index(p_table) then
    v_source := 'select h.msg_id as head, q.msg_id, q.vt
                 from head h
                 cross join lateral (
                   select q.msg_id, q.vt
                   from pgmq.%1$I q
                   where %2$s = h.grp
                   order by %2$s, q.msg_id
                   limit $3
                 ) as q';
  end if;
  execute format(
    'with head as materialized (
       select q.msg_id, %2$s as grp from pgmq.%1$I q where q.msg_id = any ($1)
     ), ranked as (
       select s.head, s.msg_id, row_number() over before as place, bool_and(s.vt <= $2) over before as is_open
       from (' || v_source || ') as s
       window before as (partition by s.head order by s.msg_id)
     )
     select array(select r.msg_id from ranked r where r.is_open order by ' || v_order || ' limit $3)',
    p_table, pgmq._group_of())
    into v_ids using p_heads, p_now, p_qty;

  -- A plain read may have taken some in between; the rest keeps its order.
  v_locked := pgmq._lock_visible(p_table, v_ids, p_qty, p_now);
  return array(
    select i.msg_id
    from unnest(v_ids) with ordinality as i (msg_id, place)
    join unnest(v_locked) as l (msg_id) on l.msg_id = i.msg_id
    order by i.place);
end
$$;

-- What the three readers have in common. p_manner: 'head', 'group by group', 'in turn'. As in PGMQ, no quantity is all
-- heads but none of the groups' messages, and taking turns knows no negative quantity.
create or replace function pgmq._read_groups (queue_name text, vt integer, qty integer, p_manner text)
  returns setof pgmq.message_record
  language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_now   timestamptz := clock_timestamp();
  v_queue text := pgmq.format_table_name(queue_name, 'q');
  v_qty   bigint := coalesce(qty, 2147483647);
  v_ids   bigint[];
begin
  if p_manner <> 'head' and qty is null or p_manner = 'in turn' and qty < 0 then
    return;
  end if;
  v_ids := pgmq._take_heads(v_queue, v_qty, v_now);
  -- When the heads alone fill the batch, taking turns ends with the first.
  if v_ids <> '{}' and (p_manner = 'group by group' or p_manner = 'in turn' and cardinality(v_ids) < v_qty) then
    v_ids := pgmq._take_followers(v_queue, v_ids, v_qty, v_now, p_manner = 'in turn');
  end if;
  if v_ids <> '{}' then
    return query select h.* from pgmq._hide(v_queue, v_ids, v_now, vt) as h;
  end if;
end
$$;

-- As much as possible of the group with the oldest message, then of the next.
create or replace function pgmq.read_grouped (queue_name text, vt integer, qty integer)
  returns setof pgmq.message_record
  language sql
begin atomic
  select * from pgmq._read_groups(queue_name, vt, qty, 'group by group');
end;

create or replace function pgmq.read_grouped_with_poll (
  queue_name text, vt integer, qty integer, max_poll_seconds integer default 5, poll_interval_ms integer default 100)
  returns setof pgmq.message_record
  language sql
begin atomic
  select * from pgmq._read_with_poll(queue_name, vt, qty, max_poll_seconds, poll_interval_ms, '{}', 'group by group');
end;

-- The first of each group, then the second of each; the result is in that order.
create or replace function pgmq.read_grouped_rr (queue_name text, vt integer, qty integer)
  returns setof pgmq.message_record
  language sql
begin atomic
  select * from pgmq._read_groups(queue_name, vt, qty, 'in turn');
end;

create or replace function pgmq.read_grouped_rr_with_poll (
  queue_name text, vt integer, qty integer, max_poll_seconds integer default 5, poll_interval_ms integer default 100)
  returns setof pgmq.message_record
  language sql
begin atomic
  select * from pgmq._read_with_poll(queue_name, vt, qty, max_poll_seconds, poll_interval_ms, '{}', 'in turn');
end;

-- One message per group.
create or replace function pgmq.read_grouped_head (queue_name text, vt integer, qty integer)
  returns setof pgmq.message_record
  language sql
begin atomic
  select * from pgmq._read_groups(queue_name, vt, qty, 'head');
end;

create or replace function pgmq.read_grouped_head_with_poll (
  queue_name text, vt integer, qty integer, max_poll_seconds integer default 5, poll_interval_ms integer default 100)
  returns setof pgmq.message_record
  language sql
begin atomic
  select * from pgmq._read_with_poll(queue_name, vt, qty, max_poll_seconds, poll_interval_ms, '{}', 'head');
end;
