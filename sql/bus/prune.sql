-- prune.sql - retention: delete what is old enough, in batches, without making any other transaction wait for more than 100 ms.
--
-- Ids grow with the time of sending, so a scan in the order of ids reads the oldest commands first, and stops where commands were sent
-- too late to be old. What was sent early and ended late is retained, and the scan continues behind it: `after` is where the next batch
-- begins; null is the beginning, and as a result: the scan is complete.
-- When a command is deleted, its key stays in pawl.kept_key, so that its id is not new, and its events in pawl.kept_audit. Commands of a batch
-- stay until the batch has been complete for as long, because its progress is computed from them; and the batch as long as keys, because
-- a repeated request would open it anew, find its commands known, and complete it a second time.
-- Lock order: attached rows (pawl.attached_prunable), without waiting; command and outcome rows; then, in pawl.prune_audit, pawl.event or
-- pawl.kept_audit exclusively, until the commit. So pawl.prune_audit is a transaction of its own, or the last call of one.
-- Errors: QU001 a limit out of range, an age below that of pawl.least_age.

-- May periodic retention delete now? Not while the clock is more than a day past the last retention: it may have jumped ahead, and what is
-- deleted by a wrong clock cannot be restored. If the clock is still there a day later, it is taken to be right, as after a long stop of all
-- pods. A clock that was set back is followed immediately.
create or replace function pawl.retention_ready ()
  returns boolean
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
declare
  c_step constant interval := interval '1 day';
  v_now timestamptz := pawl.now();
  v_clock pawl.retention_clock;
  v_ready boolean;
begin
  select * into v_clock from pawl.retention_clock;
  v_ready := (v_now <= v_clock.at + c_step or v_now >= v_clock.jumped_at + c_step) is true;
  if v_ready and (v_clock.jumped_at is not null or v_now not between v_clock.at and v_clock.at + interval '1 min') then
    update pawl.retention_clock c set at = v_now, jumped_at = null
    where c.single in (select l.single from pawl.retention_clock l for update skip locked);
  elsif not v_ready and (v_clock.jumped_at is null or v_now < v_clock.jumped_at) then
    update pawl.retention_clock c set jumped_at = v_now
    where c.single in (select l.single from pawl.retention_clock l for update skip locked);
    raise warning 'retention waits for a day: the clock is % past the last retention', v_now - v_clock.at;
  end if;
  return v_ready;
end
$$;

-- By how many seconds the clock had moved when retention began to wait; 0: it does not wait.
create or replace function pawl.retention_jump_s ()
  returns bigint
  language sql stable security definer set search_path = pawl, pg_temp
as $$ select coalesce(max(extract(epoch from c.jumped_at - c.at)), 0)::bigint from pawl.retention_clock c $$;

-- Delete these ended commands and keep what stays of them. Returns how many.
create or replace function pawl.prune_ids (p_ids bigint[], p_audit_start timestamptz)
  returns bigint
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
declare
  v_gone bigint;
begin
  p_ids := pawl.unique_prunable(pawl.attached_prunable(p_ids), pawl.now());
  with command as (
    delete from pawl.command c where c.id = any (p_ids)
    returning c.id, c.command_id, c.domain_id, c.type, c.payload, c.created_at, c.sender
  ), outcome as (
    delete from pawl.outcome o where o.id = any (p_ids)
    returning o.id, o.status, o.attempts, o.started_at, o.worker, o.ended_at, o.error
  ), progress as (
    delete from pawl.progress g where g.id = any (p_ids)
  ), lost as (
    delete from pawl.lost_attempt l where l.id = any (p_ids)
  ), snoozed as (
    delete from pawl.snooze s where s.id = any (p_ids)
  ), replaced as (
    delete from pawl.replaced_payload r where r.id = any (p_ids) returning r.id, r.payload_hash
  ), key as (
    insert into pawl.kept_key (command_id, domain_id, type, payload_hash, status, ended_at)
    select c.command_id, c.domain_id, c.type, coalesce(r.payload_hash, pawl.payload_hash(c.payload)), o.status, o.ended_at
    from command c join outcome o on o.id = c.id left join replaced r on r.id = c.id
    on conflict (command_id, domain_id) do nothing
  ), audit as (
    insert into pawl.kept_audit (id, domain_id, command_id, created_at, sender, started_at, worker, ended_at, status, attempts, error)
    select c.id, c.domain_id, c.command_id, c.created_at, c.sender, o.started_at, o.worker, o.ended_at, o.status,
           o.attempts, case when o.started_at is not null then o.error end
    from command c join outcome o on o.id = c.id
    where o.ended_at >= p_audit_start
  )
  select count(*) into v_gone from outcome;
  perform pawl.attached_pruned(p_ids);
  return v_gone;
end
$$;

-- The same. One that fails stops none beside it: what fails together is halved until it is alone, and is left to the next scan.
create or replace function pawl.prune_apart (p_ids bigint[], p_audit_start timestamptz)
  returns bigint
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
declare
  v_count integer := coalesce(cardinality(p_ids), 0);
begin
  if v_count = 0 then
    return 0;
  end if;
  begin
    return pawl.prune_ids(p_ids, p_audit_start);
  exception when others then
    if pawl.is_transient(sqlstate) then
      raise;
    end if;
    if v_count = 1 then
      raise warning 'command number % cannot be deleted: %', p_ids[1], sqlerrm;
      return 0;
    end if;
  end;
  return pawl.prune_apart(p_ids[:v_count / 2], p_audit_start) + pawl.prune_apart(p_ids[v_count / 2 + 1:], p_audit_start);
end
$$;

-- Those of these commands that no batch needs any more.
create or replace function pawl.prunable_of_batches (p_ids bigint[], p_cutoff timestamptz)
  returns bigint[]
  language plpgsql stable set search_path = pawl, pg_temp
  set plan = keyed_cached
as $$
begin
  return array(
    select u.id from unnest(p_ids) u (id)
    left join lateral (select c.batch_id from pawl.command c where c.id = u.id limit 1) c on true
    left join lateral (select b.id, b.completed_at from pawl.batch b where b.id = c.batch_id limit 1) b on true
    where b.id is null or b.completed_at < p_cutoff);
end
$$;

create or replace function pawl.prune_commands (p_limit integer, p_older interval, inout after bigint, out gone bigint)
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
declare
  v_cutoff timestamptz := pawl.prune_check('commands', p_limit, p_older);
  v_audit_start timestamptz := (select case when s.at <= pawl.now() then s.at else '-infinity' end from pawl.audit_start s);
  v_old bigint[];
  v_looked integer;
begin
  select array_agg(o.id) filter (where o.ended_at < v_cutoff), max(o.id), count(*) into v_old, after, v_looked
  from (select o.id, o.ended_at from pawl.outcome o
        where o.id > coalesce(prune_commands.after, -9223372036854775808) order by o.id limit p_limit) o;
  if v_looked < p_limit or (select c.created_at >= v_cutoff from pawl.command c where c.id = after) then
    after := null;
  end if;
  v_old := pawl.prunable_of_batches(v_old, v_cutoff);
  if not pawl.kept_audit_make(v_old, v_audit_start) then
    after := null; -- another process creates or drops a partition: the next scan tries again
    gone := 0;
    return;
  end if;
  gone := pawl.prune_apart(v_old, v_audit_start);
end
$$;

-- Keys of commands that ended longer ago than this: their ids are new from then on; and batches without commands that were complete before; and keys of
-- modules. Returns how many keys of commands or of modules went, whichever is more.
create or replace function pawl.prune_keys (p_limit integer, p_older interval)
  returns bigint
  language plpgsql security definer set search_path = pawl, pg_temp
  set plan = index_cached
as $$
declare
  v_cutoff timestamptz := pawl.prune_check('keys', p_limit, p_older);
  v_gone bigint;
begin
  delete from pawl.kept_key k
  where k.ctid = any (array(
    select k.ctid from pawl.kept_key k where k.ended_at < v_cutoff order by k.ended_at limit p_limit));
  get diagnostics v_gone = row_count;
  perform pawl.unique_prune(p_limit, pawl.now());
  delete from pawl.batch b
  where b.id = any (array(
    select b.id from pawl.batch b
    where b.completed_at < v_cutoff and not exists (select from pawl.command c where c.batch_id = b.id)
    order by b.completed_at limit p_limit for update skip locked));
  return greatest(v_gone, pawl.attached_keys_prune(p_limit, v_cutoff));
end
$$;

-- Create the partitions that the audit of these ended commands needs. False: one of them could not be created now.
create or replace function pawl.kept_audit_make (p_ids bigint[], p_since timestamptz)
  returns boolean
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
declare
  v_week timestamptz;
begin
  for v_week in
    select distinct date_bin('7 days', o.ended_at, '2001-01-01 00:00:00+00')
    from pawl.outcome o
    where o.id = any (p_ids) and o.ended_at >= p_since
  loop
    if not pawl.partition_make('pawl.kept_audit', v_week) then
      return false;
    end if;
  end loop;
  return true;
end
$$;

-- Show no event older than p_older, drop the partitions in which all are, and delete up to p_limit of them from the
-- default partition and of pawl.control_event. Returns how many rows were deleted, of the table that lost more.
create or replace function pawl.prune_audit (p_limit integer, p_older interval)
  returns bigint
  language plpgsql security definer set search_path = pawl, pg_temp
  set plan = index_cached
as $$
declare
  v_now timestamptz := pawl.now();
  v_cutoff timestamptz := pawl.prune_check('audit', p_limit, p_older);
  v_gone bigint;
begin
  update pawl.audit_start s set at = v_cutoff where s.at < v_cutoff or s.at > v_now; -- in the future: a clock ran ahead
  delete from pawl.event_rest e where e.ctid = any (array(
    select e.ctid from pawl.event_rest e where e.at < v_cutoff order by e.at limit p_limit));
  get diagnostics v_gone = row_count;
  v_gone := greatest(v_gone, pawl.control_prune(p_limit, v_cutoff), pawl.bulk_prune(p_limit, v_cutoff));
  perform pawl.partition_make('pawl.event', v_now + w.week) from (values (interval '0'), (interval '7 days')) w (week);
  perform pawl.partitions_drop('pawl.event', v_cutoff), pawl.partitions_drop('pawl.kept_audit', v_cutoff);
  return v_gone;
end
$$;

-- Both from the beginning, until as many went or nothing is left. Returns how many commands or events went, whichever is
-- more: call again while it is the limit or above.
create or replace function pawl.prune (p_limit integer, p_commands_older interval, p_audit_older interval)
  returns bigint
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
declare
  v_commands bigint := 0;
  v_gone bigint;
  v_after bigint;
begin
  loop
    select p.after, p.gone into v_after, v_gone from pawl.prune_commands(p_limit, p_commands_older, v_after) p;
    v_commands := v_commands + v_gone;
    exit when v_after is null or v_commands >= p_limit;
  end loop;
  return greatest(v_commands, pawl.prune_audit(p_limit, p_audit_older));
end
$$;

-- What a monitor calls: prune_commands and prune_keys, unless retention waits. Nothing is deleted then, and the scan is complete.
create or replace function pawl.retain (
  p_limit integer, p_commands_older interval, p_keys_older interval, inout after bigint, out gone bigint)
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
begin
  if not pawl.retention_ready() then
    after := null;
    gone := 0;
    return;
  end if;
  select p.after, p.gone into retain.after, retain.gone from pawl.prune_commands(p_limit, p_commands_older, retain.after) p;
  gone := greatest(gone, pawl.prune_keys(p_limit, p_keys_older));
end
$$;
