-- prune.sql - what is old enough goes, in bites; nobody waits for it.
-- Returns how many commands or audit rows went, whichever is more: call again while it is the limit.

create or replace function pawl.prune (p_limit integer, p_commands_older interval, p_audit_older interval)
  returns bigint
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
declare
  v_now timestamptz := pawl.now();
  v_ids bigint[];
  v_gone bigint;
  v_audit bigint;
begin
  -- Ids grow with time, so the oldest stand at the front of the primary key; a command that ended late is met again.
  v_ids := array(
    select o.id
    from (select o.id, o.ended_at from pawl.outcome o order by o.id limit p_limit * 2) o
    where o.ended_at < v_now - p_commands_older
    limit p_limit
  );
  delete from pawl.command c where c.id = any (v_ids);
  delete from pawl.outcome o where o.id = any (v_ids);
  get diagnostics v_gone = row_count;
  delete from pawl.audit a
  where a.ctid = any (array(
    select a.ctid
    from (select a.ctid, a.at from pawl.audit a order by a.id limit p_limit) a
    where a.at < v_now - p_audit_older));
  get diagnostics v_audit = row_count;
  delete from pawl.batch b
  where b.id = any (array(
    select b.id from pawl.batch b
    where b.completed_at < v_now - p_commands_older
      and not exists (select from pawl.command c where c.batch_id = b.id)
    order by b.completed_at limit p_limit));
  return greatest(v_gone, v_audit);
end
$$;
