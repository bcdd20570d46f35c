-- audit_partition.sql - partitions of pawl.event and pawl.kept_audit, by week.
--
-- Locks: partitions are created and dropped under an exclusive lock on pawl.event or pawl.kept_audit, for which they wait
-- 100 ms at most; claims and settles of completed commands use neither table.

-- The partitions of a table that is partitioned by time, without the default one. from_at is null for the one that has no lower bound.
create or replace function pawl.partitions (p_parent regclass)
  returns table (name regclass, from_at timestamptz, to_at timestamptz)
  language sql stable set search_path = pawl, pg_temp set timezone = 'UTC' set datestyle = 'ISO'
as $$
  select c.oid::regclass, (regexp_match(b.bound, 'FROM \(''([^'']+)''\)'))[1]::timestamptz,
         (regexp_match(b.bound, 'TO \(''([^'']+)''\)'))[1]::timestamptz
  from pg_catalog.pg_inherits i
  join pg_catalog.pg_class c on c.oid = i.inhrelid
  cross join lateral (select pg_catalog.pg_get_expr(c.relpartbound, c.oid) as bound) b
  where i.inhparent = p_parent and b.bound <> 'DEFAULT'
$$;

-- Is there a partition for this time, other than the default one?
create or replace function pawl.partition_covers (p_parent regclass, p_at timestamptz)
  returns boolean
  language sql stable set search_path = pawl, pg_temp
as $$
  select exists (select from pawl.partitions(p_parent) p where (p.from_at is null or p.from_at <= p_at) and p_at < p.to_at)
$$;

-- Create the partition for the week of p_at unless there is one for it. Its name is that of the week, with a number where a table has the
-- name that is no partition, because an operator has detached it. False: another transaction is using the table, or the default
-- partition has rows of that week; then they stay there.
create or replace function pawl.partition_make (p_parent regclass, p_at timestamptz)
  returns boolean
  language plpgsql set search_path = pawl, pg_temp set lock_timeout = '100ms' set timezone = 'UTC'
as $$
declare
  v_from timestamptz := date_bin('7 days', p_at, '2001-01-01 00:00:00+00');
  v_week text := format('%s_%s', (select c.relname from pg_catalog.pg_class c where c.oid = p_parent), to_char(v_from, 'YYYYMMDD'));
  v_name text := v_week;
  v_number integer := 1;
begin
  if pawl.partition_covers(p_parent, p_at) then
    return true;
  end if;
  while to_regclass(format('pawl.%I', v_name)) is not null loop
    v_number := v_number + 1;
    v_name := format('%s_%s', v_week, v_number);
  end loop;
  execute format('create table pawl.%I (like %s including defaults including constraints)', v_name, p_parent);
  if not exists (select from pg_catalog.pg_index i where i.indrelid = p_parent and i.indisprimary) then
    execute format('alter table pawl.%I replica identity full', v_name);
  end if;
  execute format('alter table %s attach partition pawl.%I for values from (%L) to (%L)', p_parent, v_name, v_from,
    v_from + interval '7 days');
  return true;
exception when lock_not_available or check_violation or duplicate_table or invalid_object_definition then
  return pawl.partition_covers(p_parent, p_at); -- another process may have made it just now
end
$$;

-- Drop the partitions whose last row is older than p_cutoff. One that is in use, and those after it, are left to the
-- next call; one that a view of a user depends on stays, with a warning. Returns how many.
create or replace function pawl.partitions_drop (p_parent regclass, p_cutoff timestamptz)
  returns integer
  language plpgsql set search_path = pawl, pg_temp set lock_timeout = '100ms'
as $$
declare
  v_name regclass;
  v_dropped integer := 0;
begin
  for v_name in select p.name from pawl.partitions(p_parent) p where p.to_at <= p_cutoff order by p.to_at loop
    begin
      execute format('drop table %s', v_name);
      v_dropped := v_dropped + 1;
    exception
      when lock_not_available then
        return v_dropped;
      when dependent_objects_still_exist then
        raise warning '%, and it is older than the audit''s retention', sqlerrm;
    end;
  end loop;
  return v_dropped;
end
$$;
