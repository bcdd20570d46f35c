-- notify.sql - wake listeners when something was sent: channel pgmq.q_QUEUE.INSERT, empty payload.
-- The name is the queue's as it was created, also where its table is in lower case.
-- Lock order: a sender that notifies holds the queue's row of notify_insert_throttle until it commits; others that are due
-- wait for it, those within the interval do not.
-- All that writes notify_insert_throttle runs with the owner's rights, as no role writes it: what may write a table may lock it.
-- Errors: P0001 with PGMQ's texts.

create or replace function pgmq.notify_queue_listeners ()
  returns trigger
  language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
  v_queue text := coalesce(tg_argv[0], substr(tg_table_name, 3));
begin
  update pgmq.notify_insert_throttle t
  set last_notified_at = clock_timestamp()
  where t.queue_name = v_queue
    and (t.throttle_interval_ms = 0
         or clock_timestamp() - t.last_notified_at >= t.throttle_interval_ms * interval '1 ms');
  if found then
    perform pg_notify('pgmq.q_' || v_queue || '.' || tg_op, '');
  end if;
  return null;
end
$$;

create or replace function pgmq.enable_notify_insert (queue_name text, throttle_interval_ms integer default 250)
  returns void
  language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
  v_queue text := pgmq.format_table_name(queue_name, 'q');
begin
  if throttle_interval_ms < 0 then
    raise exception 'throttle_interval_ms must be non-negative';
  end if;
  if not exists (select from pgmq.meta m where m.queue_name = enable_notify_insert.queue_name) then
    raise exception 'Queue "%" does not exist. Create it first using pgmq.create()', queue_name;
  end if;

  perform pgmq.disable_notify_insert(queue_name);
  insert into pgmq.notify_insert_throttle (queue_name, throttle_interval_ms)
  values (enable_notify_insert.queue_name, enable_notify_insert.throttle_interval_ms);
  execute format(
    'create constraint trigger trigger_notify_queue_insert_listeners
       after insert on pgmq.%I
       deferrable
       for each row execute function pgmq.notify_queue_listeners(%L)',
    v_queue, queue_name);
end
$$;

create or replace function pgmq.disable_notify_insert (queue_name text)
  returns void
  language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
begin
  execute format('drop trigger if exists trigger_notify_queue_insert_listeners on pgmq.%I',
                 pgmq.format_table_name(queue_name, 'q'));
  delete from pgmq.notify_insert_throttle t where t.queue_name = disable_notify_insert.queue_name;
end
$$;

create or replace function pgmq.update_notify_insert (queue_name text, throttle_interval_ms integer)
  returns void
  language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
begin
  if throttle_interval_ms < 0 then
    raise exception 'throttle_interval_ms must be non-negative, got: %', throttle_interval_ms;
  end if;
  if not exists (select from pgmq.meta m where m.queue_name = update_notify_insert.queue_name) then
    raise exception 'Queue "%" does not exist. Create the queue first using pgmq.create()', queue_name;
  end if;

  update pgmq.notify_insert_throttle t
  set throttle_interval_ms = update_notify_insert.throttle_interval_ms, last_notified_at = to_timestamp(0)
  where t.queue_name = update_notify_insert.queue_name;
  if not found then
    raise exception 'Queue "%" does not have notify_insert enabled. Enable it first using pgmq.enable_notify_insert()',
      queue_name;
  end if;
end
$$;

create or replace function pgmq.list_notify_insert_throttles ()
  returns table (queue_name text, throttle_interval_ms integer, last_notified_at timestamptz)
  language sql stable
begin atomic
  select t.queue_name, t.throttle_interval_ms, t.last_notified_at
  from pgmq.notify_insert_throttle t
  order by t.queue_name;
end;
