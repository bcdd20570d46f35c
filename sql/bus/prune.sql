-- prune.sql - what is old enough goes, in bites; nobody waits for it.
--
-- Ids grow with the time of sending, so a walk along them meets what can be old first, and ends where commands were sent too
-- late for that. What was sent early and ended late stays, and the walk goes on behind it: `after` is where the next bite
-- begins; null is the beginning, and as an answer: the walk is over.
-- A command's key stays in pawl.kept_key when the command goes, so that its id is not new.
-- Errors: QU001 a limit out of range, a negative age.

create or replace function pawl.prune_commands (p_limit integer, p_older interval, inout after bigint, out gone bigint)
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
declare
  v_cutoff timestamptz := pawl.now() - p_older;
  v_old bigint[];
  v_looked integer;
begin
  if (p_limit between 1 and 1000000 and p_older >= interval '0') is not true then
    raise exception 'limit must be from 1 to 1000000, and the age must not be negative' using errcode = 'QU001';
  end if;
  select array_agg(o.id) filter (where o.ended_at < v_cutoff), max(o.id), count(*) into v_old, after, v_looked
  from (select o.id, o.ended_at from pawl.outcome o
        where o.id > coalesce(prune_commands.after, -9223372036854775808) order by o.id limit p_limit) o;
  if v_looked < p_limit or (select c.created_at >= v_cutoff from pawl.command c where c.id = after) then
    after := null;
  end if;
  with gone as (
    delete from pawl.command c where c.id = any (v_old) returning c.id, c.command_id, c.domain_id, c.type, c.payload
  )
  insert into pawl.kept_key (command_id, domain_id, type, payload_hash, status, ended_at)
  select g.command_id, g.domain_id, g.type, pawl.payload_hash(g.payload), o.status, o.ended_at
  from gone g join pawl.outcome o on o.id = g.id
  on conflict (command_id, domain_id) do nothing;
  delete from pawl.outcome o where o.id = any (v_old);
  get diagnostics gone = row_count;
  delete from pawl.batch b
  where b.id = any (array(
    select b.id from pawl.batch b
    where b.completed_at < v_cutoff and not exists (select from pawl.command c where c.batch_id = b.id)
    order by b.completed_at limit p_limit));
end
$$;

-- Keys of commands that ended longer ago than this: their ids are new from then on. Returns how many went.
create or replace function pawl.prune_keys (p_limit integer, p_older interval)
  returns bigint
  language plpgsql security definer set search_path = pawl, pg_temp
  set jit = off set plan_cache_mode = force_generic_plan set enable_seqscan = off
as $$
declare
  v_gone bigint;
begin
  if (p_limit between 1 and 1000000 and p_older >= interval '0') is not true then
    raise exception 'limit must be from 1 to 1000000, and the age must not be negative' using errcode = 'QU001';
  end if;
  delete from pawl.kept_key k
  where k.ctid = any (array(
    select k.ctid from pawl.kept_key k where k.ended_at < pawl.now() - p_older order by k.ended_at limit p_limit));
  get diagnostics v_gone = row_count;
  return v_gone;
end
$$;

create or replace function pawl.prune_audit (p_limit integer, p_older interval, inout after bigint, out gone bigint)
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
declare
  v_cutoff timestamptz := pawl.now() - p_older;
  v_old tid[];
  v_first bigint;
  v_looked integer;
  v_young boolean;
begin
  if (p_limit between 1 and 1000000 and p_older >= interval '0') is not true then
    raise exception 'limit must be from 1 to 1000000, and the age must not be negative' using errcode = 'QU001';
  end if;
  select array_agg(a.ctid) filter (where a.at < v_cutoff), min(a.id), max(a.id), count(*),
         bool_or(a.event = 'SENT' and a.at >= v_cutoff)
  into v_old, v_first, after, v_looked, v_young
  from (select a.ctid, a.id, a.at, a.event from pawl.audit a
        where a.id > coalesce(prune_audit.after, -9223372036854775808) order by a.id limit p_limit) a;
  if v_looked < p_limit or v_young then
    after := null;
  elsif after > v_first then
    after := after - 1; -- some of its rows may lie behind the bite
  end if;
  delete from pawl.audit a where a.ctid = any (v_old);
  get diagnostics gone = row_count;
end
$$;

-- Both from the beginning, until as many went or nothing is left. Returns how many commands or audit rows went, whichever is
-- more: call again while it is the limit or above.
create or replace function pawl.prune (p_limit integer, p_commands_older interval, p_audit_older interval)
  returns bigint
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
declare
  v_commands bigint := 0;
  v_audit bigint := 0;
  v_gone bigint;
  v_after bigint;
begin
  loop
    select p.after, p.gone into v_after, v_gone from pawl.prune_commands(p_limit, p_commands_older, v_after) p;
    v_commands := v_commands + v_gone;
    exit when v_after is null or v_commands >= p_limit;
  end loop;
  v_after := null;
  loop
    select p.after, p.gone into v_after, v_gone from pawl.prune_audit(p_limit, p_audit_older, v_after) p;
    v_audit := v_audit + v_gone;
    exit when v_after is null or v_audit >= p_limit;
  end loop;
  return greatest(v_commands, v_audit);
end
$$;
