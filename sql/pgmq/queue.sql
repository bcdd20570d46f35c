-- queue.sql - creates and drops queues: a table q_NAME of messages, a table a_NAME of archived ones, a row in meta.
-- Invariant: a queue has all three or none; create and drop of one queue wait for each other (acquire_queue_lock).
-- Functions that make or drop tables run with the owner's rights, so that every queue has one owner and the same grants,
-- no matter which role created it (see grants.sql). Everything else in this schema runs with the caller's rights.
-- Errors: P0001 with PGMQ's texts, which clients compare.

-- For the forms that PGMQ keeps only to say that they are going.
create or replace function pgmq._warn (message text)
  returns void
  language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
  raise warning '%', message;
end
$$;

create or replace function pgmq._extension_exists (extension_name text)
  returns boolean
  language sql stable
begin atomic
  select exists (select from pg_catalog.pg_extension e where e.extname = extension_name);
end;

create or replace function pgmq._refuse_queue_name (queue_name text) -- an argument, or the planner would call it
  returns text
  language plpgsql immutable set search_path = pg_catalog, pg_temp
as $$
begin
  raise exception 'queue name contains invalid characters: $, ;, --, or \''';
end
$$;

-- The table of a queue: what is refused here can be quoted nowhere, also not by clients that write their own statements.
-- Every call of every function comes through here: as an expression that its callers' plans take in, it costs next to nothing.
create or replace function pgmq.format_table_name (queue_name text, prefix text)
  returns text
  language sql immutable
begin atomic
  select case when queue_name ~ '\$|;|--|''' then pgmq._refuse_queue_name(queue_name)
              else lower(prefix || '_' || queue_name)
         end;
end;

-- 47, because "archived_at_idx_" and the name must fit into the 63 bytes of an identifier.
create or replace function pgmq.validate_queue_name (queue_name text)
  returns void
  language plpgsql immutable set search_path = pg_catalog, pg_temp
as $$
begin
  if length(queue_name) > 47 then
    raise exception 'queue name is too long, maximum length is 47 characters';
  end if;
  -- The table of a queue "a_vt_idx" would have the name of an index of the queue "a".
  if lower(queue_name) ~ '_(pkey|msg_id_seq|vt_idx|fifo_idx|group_idx)$' then
    raise exception 'queue name must not end in _pkey, _msg_id_seq, _vt_idx, _fifo_idx or _group_idx, got "%"', queue_name;
  end if;
end
$$;

-- Until the end of the transaction. In lower case, because names that differ only by case share their tables. A row and no advisory lock,
-- which every login could take: another transaction that inserts the same name waits for this one, although the row is deleted again.
create or replace function pgmq.acquire_queue_lock (queue_name text)
  returns void
  language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
begin
  insert into pawl.queue_lock (name) select lower(acquire_queue_lock.queue_name) where acquire_queue_lock.queue_name is not null;
  delete from pawl.queue_lock l where l.name = lower(acquire_queue_lock.queue_name);
end
$$;

-- Both kinds of queue; the archive is logged in either case.
create or replace function pgmq._create_queue (queue_name text, is_unlogged boolean)
  returns void
  language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
  v_queue   text := pgmq.format_table_name(queue_name, 'q');
  v_archive text := pgmq.format_table_name(queue_name, 'a');
begin
  perform pgmq.validate_queue_name(queue_name);
  perform pgmq.acquire_queue_lock(queue_name);

  execute format(
    'create %s table if not exists pgmq.%I (
       msg_id       bigint      generated always as identity primary key,
       read_ct      integer     not null default 0,
       enqueued_at  timestamptz not null default now(),
       last_read_at timestamptz,
       vt           timestamptz not null,
       message      jsonb,
       headers      jsonb)',
    case when is_unlogged then 'unlogged' end, v_queue);
  execute format(
    'create table if not exists pgmq.%I (
       msg_id       bigint      primary key,
       read_ct      integer     not null default 0,
       enqueued_at  timestamptz not null default now(),
       last_read_at timestamptz,
       archived_at  timestamptz not null default now(),
       vt           timestamptz not null,
       message      jsonb,
       headers      jsonb)',
    v_archive);
  execute format('create index if not exists %I on pgmq.%I (vt)', v_queue || '_vt_idx', v_queue);
  execute format('create index if not exists %I on pgmq.%I (archived_at)',
                 'archived_at_idx_' || lower(queue_name), v_archive);

  insert into pgmq.meta (queue_name, is_partitioned, is_unlogged)
  values (_create_queue.queue_name, false, _create_queue.is_unlogged)
  on conflict do nothing;
end
$$;

create or replace function pgmq.create_non_partitioned (queue_name text)
  returns void
  language sql
begin atomic
  select pgmq._create_queue(queue_name, false);
end;

create or replace function pgmq.create (queue_name text)
  returns void
  language sql
begin atomic
  select pgmq._create_queue(queue_name, false);
end;

create or replace function pgmq.create_unlogged (queue_name text)
  returns void
  language sql
begin atomic
  select pgmq._create_queue(queue_name, true);
end;

-- A queue is there when its table is; names that differ only by case are one.
create or replace function pgmq.drop_queue (queue_name text)
  returns boolean
  language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
  v_queue text := pgmq.format_table_name(queue_name, 'q');
begin
  perform pgmq.acquire_queue_lock(queue_name);
  if v_queue is null or to_regclass(format('pgmq.%I', v_queue)) is null then
    raise notice 'pgmq queue `%` does not exist', queue_name;
    return false;
  end if;

  execute format('drop table pgmq.%I', v_queue);
  execute format('drop table if exists pgmq.%I', pgmq.format_table_name(queue_name, 'a'));
  delete from pgmq.meta m where lower(m.queue_name) = lower(drop_queue.queue_name); -- bindings and throttle go with it
  return true;
end
$$;

-- True also when there was nothing to drop, as in PGMQ.
create or replace function pgmq.drop_queue (queue_name text, partitioned boolean)
  returns boolean
  language sql
begin atomic
  select pgmq._warn('drop_queue(queue_name, partitioned) is deprecated and will be removed in PGMQ v2.0. '
                    'Use drop_queue(queue_name) instead');
  select pgmq.drop_queue(queue_name) is not null;
end;

create or replace function pgmq.detach_archive (queue_name text)
  returns void
  language sql
begin atomic
  select pgmq._warn('detach_archive(queue_name) is deprecated and is a no-op. It will be removed in PGMQ v2.0. '
                    'Archive tables are no longer member objects.');
end;

-- Counted and emptied under one lock, so that the number is right. The sequence goes on.
create or replace function pgmq.purge_queue (queue_name text)
  returns bigint
  language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
  v_queue text := pgmq.format_table_name(queue_name, 'q');
  v_count bigint;
begin
  execute format('lock table pgmq.%I in access exclusive mode', v_queue);
  execute format('select count(*) from pgmq.%I', v_queue) into v_count;
  execute format('truncate pgmq.%I', v_queue);
  return v_count;
end
$$;

create or replace function pgmq.list_queues ()
  returns setof pgmq.queue_record
  language sql stable
begin atomic
  select m.queue_name, m.is_partitioned, m.is_unlogged, m.created_at
  from pgmq.meta m
  order by m.created_at, m.queue_name;
end;

-- PGMQ's index on headers, for people who look for them; and ours, which gives the groups of group.sql their order.
create or replace function pgmq.create_fifo_index (queue_name text)
  returns void
  language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
  v_queue text := pgmq.format_table_name(queue_name, 'q');
begin
  execute format('create index if not exists %I on pgmq.%I using gin (headers)', v_queue || '_fifo_idx', v_queue);
  execute format(
    'create index if not exists %I on pgmq.%I (coalesce(headers ->> ''x-pgmq-group'', ''_default_fifo_group''), msg_id)',
    v_queue || '_group_idx', v_queue);
end
$$;

create or replace function pgmq._create_fifo_index_if_not_exists (queue_name text)
  returns void
  language sql
begin atomic
  select pgmq.create_fifo_index(queue_name);
end;

create or replace function pgmq.create_fifo_indexes_all ()
  returns void
  language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
  perform pgmq.create_fifo_index(m.queue_name) from pgmq.meta m;
end
$$;
