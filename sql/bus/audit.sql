-- audit.sql - what happened to each command, and by whom.
--
-- Invariant: each event is shown once. SENT follows from the command's row; RECEIVED from the lease while it lasts, then from the outcome
-- of the settle that ended it; the end follows from that outcome. All other events are rows of pawl.event, and so is RECEIVED when the
-- lease ended otherwise: a statement that deletes a lease without writing its started_at and worker to pawl.outcome writes the event.
-- When retention deletes a command and its outcome, it writes what the audit needs of them to pawl.kept_audit. What is older than the
-- audit's retention is not shown, wherever it is.
-- Locks: readers none. Partitions are created and dropped under an exclusive lock on pawl.event or pawl.kept_audit, for which they wait
-- 100 ms at most; claims and settles of completed commands use neither table.

-- Ordered by (at, step, place): step and place decide between events of the same microsecond. By id it is read by index; by command_id
-- too, but for pawl.event and pawl.kept_audit, which are scanned.
create or replace view pawl.audit as
  select a.* from (
    select c.id, c.created_at as at, c.domain_id, 0::smallint as attempt, 'SENT'::text as event, c.command_id, c.sender as actor,
           null::jsonb as details, 0 as step, null::tid as place
    from pawl.command c
    union all
    select e.id, e.at, e.domain_id, e.attempt, e.event,
           coalesce(e.command_id, c.command_id, (select k.command_id from pawl.kept_audit k where k.id = e.id limit 1)), e.actor, e.details,
           case when e.event = 'OPERATOR_CANCEL' then 3
                when e.event in ('COMPLETED', 'FAILED', 'CANCELED', 'OPERATOR_COMPLETE') then 4
                else 1 end, e.ctid
    from pawl.event e left join pawl.command c on c.id = e.id
    union all
    select l.id, l.started_at, l.domain_id, l.attempt, 'RECEIVED', c.command_id, l.worker, null, 2, null
    from pawl.lease l join pawl.command c on c.id = l.id
    union all
    select o.id, o.started_at, o.domain_id, o.attempts, 'RECEIVED', c.command_id, o.worker, null, 2, null
    from pawl.outcome o join pawl.command c on c.id = o.id where o.started_at is not null
    union all
    select o.id, o.ended_at, o.domain_id, o.attempts, o.status, c.command_id, null,
           case when o.error is not null then jsonb_build_object('error', o.error) end, 4, null
    from pawl.outcome o join pawl.command c on c.id = o.id where o.started_at is not null
    union all
    select k.id, k.created_at, k.domain_id, 0::smallint, 'SENT', k.command_id, k.sender, null, 0, null
    from pawl.kept_audit k
    union all
    select k.id, k.started_at, k.domain_id, k.attempts, 'RECEIVED', k.command_id, k.worker, null, 2, null
    from pawl.kept_audit k where k.started_at is not null
    union all
    select k.id, k.ended_at, k.domain_id, k.attempts, k.status, k.command_id, null,
           case when k.error is not null then jsonb_build_object('error', k.error) end, 4, null
    from pawl.kept_audit k where k.started_at is not null
  ) a
  -- A start in the future was set by a clock that ran ahead: nothing is hidden until retention sets it anew.
  where a.at >= (select case when s.at <= pawl.now() then s.at else '-infinity' end from pawl.audit_start s);

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
