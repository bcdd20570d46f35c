-- settle.sql - what a reader does with a message it has: delete, archive, or hide it for longer or shorter.
-- There is no lease: any caller may settle any message, as in PGMQ. A message that is not there is no error.
-- Lock order: messages by msg_id, so that calls with overlapping arrays do not deadlock. A scan of the primary key for an
-- array visits its ids in ascending order, which is then also the order of the result; other scans are off, because they visit
-- rows as they lie in the table.

create or replace function pgmq.delete (queue_name text, msg_id bigint)
  returns boolean
  language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_count bigint;
begin
  execute format('delete from pgmq.%I q where q.msg_id = $1', pgmq.format_table_name(queue_name, 'q')) using msg_id;
  get diagnostics v_count = row_count;
  return v_count > 0;
end
$$;

create or replace function pgmq.delete (queue_name text, msg_ids bigint[])
  returns setof bigint
  language plpgsql set search_path = pg_catalog, pg_temp set plan = ordered
as $$
declare
  v_queue text := pgmq.format_table_name(queue_name, 'q');
begin
  return query execute format('delete from pgmq.%I q where q.msg_id = any ($1) returning q.msg_id', v_queue)
    using msg_ids;
end
$$;

create or replace function pgmq.archive (queue_name text, msg_ids bigint[])
  returns setof bigint
  language plpgsql set search_path = pg_catalog, pg_temp set plan = ordered
as $$
declare
  v_queue text := pgmq.format_table_name(queue_name, 'q');
begin
  return query execute format(
    'with gone as (
       delete from pgmq.%I q
       where q.msg_id = any ($1)
       returning q.msg_id, q.vt, q.read_ct, q.enqueued_at, q.last_read_at, q.message, q.headers
     )
     insert into pgmq.%I (msg_id, vt, read_ct, enqueued_at, last_read_at, message, headers)
     select g.* from gone g
     returning msg_id',
    v_queue, pgmq.format_table_name(queue_name, 'a'))
    using msg_ids;
end
$$;

create or replace function pgmq.archive (queue_name text, msg_id bigint)
  returns boolean
  language sql
begin atomic
  select exists (select from pgmq.archive(queue_name, array[msg_id]));
end;

create or replace function pgmq.set_vt (queue_name text, msg_ids bigint[], vt timestamptz)
  returns setof pgmq.message_record
  language plpgsql set search_path = pg_catalog, pg_temp set plan = ordered
as $$
declare
  v_queue text := pgmq.format_table_name(queue_name, 'q');
begin
  return query execute format(
    'update pgmq.%I q
     set vt = $2
     where q.msg_id = any ($1)
     returning q.msg_id, q.read_ct, q.enqueued_at, q.last_read_at, q.vt, q.message, q.headers',
    v_queue)
    using msg_ids, vt;
end
$$;

create or replace function pgmq.set_vt (queue_name text, msg_ids bigint[], vt integer)
  returns setof pgmq.message_record
  language sql
begin atomic
  select * from pgmq.set_vt(queue_name, msg_ids, clock_timestamp() + make_interval(secs => vt));
end;

create or replace function pgmq.set_vt (queue_name text, msg_id bigint, vt timestamptz)
  returns setof pgmq.message_record
  language sql
begin atomic
  select * from pgmq.set_vt(queue_name, array[msg_id], vt);
end;

create or replace function pgmq.set_vt (queue_name text, msg_id bigint, vt integer)
  returns setof pgmq.message_record
  language sql
begin atomic
  select * from pgmq.set_vt(queue_name, array[msg_id], clock_timestamp() + make_interval(secs => vt));
end;
