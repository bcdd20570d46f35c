-- reply_read.sql - reply queues for clients without PGMQ: list them, read replies, acknowledge them.
--
-- Only queues that pawl has created, because a reply_to named them (pawl.reply_queue_is_own). One that an application has created itself is the
-- application's: it may hold anything, and is read by PGMQ.
-- A reply that was read is hidden until its time is over, and read again then. Its read count says which read it was, so it is the token of the
-- acknowledgement: that of an earlier read changes nothing.
-- Errors: QU001 an argument is out of range. QU004 there is no such queue.

create or replace function pawl.reply_queue_table (p_queue text)
  returns text
  language plpgsql
as $$
begin
  if (case when pawl.reply_is_queue_name(p_queue) then not pawl.reply_queue_is_own(p_queue) else true end) then
    raise exception 'reply queue "%" not found', left(coalesce(p_queue, 'null'), 80) using errcode = 'QU004',
      hint = 'A send with this reply_to creates it. Queues made by pgmq.create() are read by PGMQ.';
  end if;
  return pgmq.format_table_name(p_queue, 'q');
end
$$;

-- Queues by name, behind p_after. messages: how many replies there are, counted up to 10000; oldest_at: when the oldest of them came.
create or replace function pawl.reply_queue_list (p_after text, p_limit integer)
  returns table (queue text, creator text, messages bigint, oldest_at timestamptz, created_at timestamptz)
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
#variable_conflict use_column
begin
  if (p_limit between 1 and 1000) is not true then
    raise exception 'limit must be from 1 to 1000, got %', coalesce(p_limit::text, 'null') using errcode = 'QU001';
  end if;
  for queue, creator, created_at in
    select r.name, r.creator, r.created_at from pawl.reply_queue r
    where (p_after is null or r.name > p_after) and pawl.reply_queue_is_own(r.name)
    order by r.name
    limit p_limit
  loop
    execute format('select (select count(*) from (select from pgmq.%1$I order by msg_id limit 10000) m), (select enqueued_at from pgmq.%1$I order by msg_id limit 1)',
                   pgmq.format_table_name(queue, 'q'))
      into messages, oldest_at;
    return next;
  end loop;
end
$$;

-- Up to p_limit replies, as many as have p_bytes together, and one at least; they are hidden for p_visible_s. What is too large for a response is shown
-- as its size.
create or replace function pawl.reply_read (p_queue text, p_limit integer, p_visible_s integer, p_bytes bigint)
  returns table (msg_id bigint, read_count integer, enqueued_at timestamptz, visible_at timestamptz, message jsonb)
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
#variable_conflict use_column
declare
  v_table text := pawl.reply_queue_table(p_queue);
  v_bytes bigint := 0;
  v_back bigint[] := '{}';
  v_size bigint;
begin
  if (p_limit between 1 and 1000 and p_visible_s between 1 and 86400 and p_bytes >= 0) is not true then
    raise exception 'limit must be from 1 to 1000 and visible_s from 1 to 86400, got % and %', coalesce(p_limit::text, 'null'),
      coalesce(p_visible_s::text, 'null') using errcode = 'QU001';
  end if;
  for msg_id, read_count, enqueued_at, visible_at, message in
    select m.msg_id, m.read_ct, m.enqueued_at, m.vt, m.message from pgmq.read(p_queue, p_visible_s, p_limit) m order by m.msg_id
  loop
    v_size := case when pawl.json_is_large(message) then p_bytes + 1 else octet_length(message::text) end;
    if v_bytes > 0 and v_bytes + v_size > p_bytes then
      v_back := v_back || msg_id;
      continue;
    end if;
    v_bytes := v_bytes + v_size;
    if v_size > p_bytes then
      message := jsonb_build_object('truncated', true, 'stored_bytes', pg_column_size(array[message]));
    end if;
    return next;
  end loop;
  if cardinality(v_back) > 0 then -- as if they had not been read
    execute format('update pgmq.%I set vt = clock_timestamp(), read_ct = read_ct - 1 where msg_id = any ($1)', v_table) using v_back;
  end if;
end
$$;

-- Delete replies that were read. A verdict for each: acknowledged; lost (it was visible again, and read again); gone (it was acknowledged before, or
-- retention has deleted it); busy (another transaction has it locked).
create or replace function pawl.reply_ack (p_queue text, p_msg_ids bigint[], p_read_counts integer[])
  returns table (ord integer, verdict text)
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
declare
  v_table text := pawl.reply_queue_table(p_queue);
begin
  perform pawl.array_check('msg_ids', p_msg_ids, cardinality(p_msg_ids), 'QU001'),
          pawl.array_check('read_counts', p_read_counts, cardinality(p_msg_ids), 'QU001');
  return query execute format(
    'with given as (
       select u.* from unnest($1, $2) with ordinality u (msg_id, read_ct, ord)
     ), held as materialized (
       select q.msg_id, q.read_ct from pgmq.%1$I q where q.msg_id = any ($1) order by q.msg_id for update skip locked
     ), gone as (
       delete from pgmq.%1$I q
       where q.msg_id in (select h.msg_id from held h join given g on g.msg_id = h.msg_id and g.read_ct = h.read_ct and h.read_ct > 0)
       returning q.msg_id
     )
     select g.ord::integer,
            case when h.read_ct = g.read_ct and d.msg_id is not null then ''acknowledged''
                 when h.msg_id is not null then ''lost''
                 when exists (select from pgmq.%1$I q where q.msg_id = g.msg_id) then ''busy''
                 else ''gone'' end
     from given g
     left join held h on h.msg_id = g.msg_id
     left join gone d on d.msg_id = g.msg_id
     order by g.ord', v_table)
    using p_msg_ids, p_read_counts;
end
$$;
