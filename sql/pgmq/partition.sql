-- partition.sql - partitioned queues need the extension and are refused here, with PGMQ's message if it has one.
-- Errors: P0001 without pg_partman, as in PGMQ; 0A000 with it.

create or replace function pgmq._ensure_pg_partman_installed ()
  returns void
  language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
  if not pgmq._extension_exists('pg_partman') then
    raise exception 'pg_partman is required for partitioned queues';
  end if;
end
$$;

create or replace function pgmq._refuse_partitions ()
  returns void
  language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
  perform pgmq._ensure_pg_partman_installed();
  raise exception 'partitioned queues need the extension pgmq' using errcode = 'feature_not_supported';
end
$$;

create or replace function pgmq._check_partitioned (queue_name text, premake integer)
  returns void
  language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
  perform pgmq.format_table_name(queue_name, 'q');
  perform pgmq.validate_queue_name(queue_name);
  if premake < 1 then
    raise exception 'premake must be at least 1, got %', premake;
  end if;
end
$$;

create or replace function pgmq.create_partitioned (
  queue_name text, partition_interval text default '10000', retention_interval text default '100000',
  premake integer default 4)
  returns void
  language sql
begin atomic
  select pgmq._check_partitioned(queue_name, premake);
  select pgmq._refuse_partitions();
end;

-- Is there an archive that could be converted? The letter s after the name is PGMQ's.
create or replace function pgmq._archive_is_convertible (table_name text)
  returns boolean
  language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_archive text := pgmq.format_table_name(table_name, 'a');
  v_kind    "char";
begin
  select c.relkind into v_kind
  from pg_class c
  where c.relnamespace = 'pgmq'::regnamespace and c.relname = v_archive;
  if v_kind is null then
    raise notice 'Table %s does not exists', v_archive;
  elsif v_kind = 'p' then
    raise notice 'Table %s is already partitioned', v_archive;
  end if;
  return v_kind = 'r';
end
$$;

create or replace function pgmq.convert_archive_partitioned (
  table_name text, partition_interval text default '10000', retention_interval text default '100000',
  leading_partition integer default 10)
  returns void
  language sql
begin atomic
  select pgmq._refuse_partitions() where pgmq._archive_is_convertible(table_name);
end;
