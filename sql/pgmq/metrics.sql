-- metrics.sql - how long the queues are. Counted, not kept: a counter would make every send wait for every other.

create or replace function pgmq.metrics (queue_name text)
  returns pgmq.metrics_result
  language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_queue  text := pgmq.format_table_name(queue_name, 'q');
  v_result pgmq.metrics_result;
begin
  execute format(
    'select $1, count(*), extract(epoch from now() - max(q.enqueued_at))::integer,
            extract(epoch from now() - min(q.enqueued_at))::integer,
            (select case when s.is_called then s.last_value else 0 end from pgmq.%I s), now(),
            count(*) filter (where q.vt <= now()), null::bigint
     from pgmq.%I q',
    v_queue || '_msg_id_seq', v_queue)
    into v_result using queue_name;
  return v_result;
end
$$;

create or replace function pgmq.metrics_all ()
  returns setof pgmq.metrics_result
  language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
  return query
    select r.*
    from pgmq.meta m
    cross join lateral pgmq.metrics(m.queue_name) as r
    order by m.created_at, m.queue_name;
end
$$;
