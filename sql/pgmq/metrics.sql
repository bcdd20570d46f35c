-- metrics.sql - lengths of queues. They are counted on each call, because a counter would make senders wait for each other.
-- With the owner's rights, so that who may read no message can still see how many there are. Queues here are not partitioned, so none has a default partition to count.

create or replace function pgmq.metrics (queue_name text)
  returns pgmq.metrics_result
  language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
  v_queue  text := pgmq.format_table_name(queue_name, 'q');
  v_length bigint;
  v_newest timestamptz;
  v_oldest timestamptz;
  v_total  bigint;
  v_ready  bigint;
begin
  execute format(
    'select count(*), max(q.enqueued_at), min(q.enqueued_at), count(*) filter (where q.vt <= now()),
            (select case when s.is_called then s.last_value else 0 end from pgmq.%I s)
     from pgmq.%I q',
    v_queue || '_msg_id_seq', v_queue)
    into v_length, v_newest, v_oldest, v_ready, v_total;
  return row(queue_name, v_length, extract(epoch from now() - v_newest)::integer,
             extract(epoch from now() - v_oldest)::integer, v_total, now(), v_ready,
             null::bigint)::pgmq.metrics_result;
end
$$;

create or replace function pgmq.metrics_all ()
  returns setof pgmq.metrics_result
  language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
begin
  return query
    select r.*
    from pgmq.meta m
    cross join lateral pgmq.metrics(m.queue_name) as r
    order by m.created_at, m.queue_name;
end
$$;
