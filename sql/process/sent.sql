-- sent.sql - commands and children that processes have sent: known by the process, and canceled when it ends before them.
--
-- A process that ends, or begins to be compensated, only notes in its transaction what it has sent and what is still open (pawl.process_orphan). That
-- is canceled by a periodic task in transactions of its own, because the end of a child locks the child first and its parent then. What its
-- compensations send afterwards has no note.
-- Lock order: rows of pawl.process_orphan, then as pawl.command_cancel and pawl.process_compensate, each wait for a lock at most 100 ms.
-- Errors: QP001 the limit is out of range.

-- Commands of pawl.send_items that steps of processes have sent. A runner that was stopped before it sent may come after another one has begun to
-- compensate, or has ended the process: what it sends has a note at once. Code is fenced by its lease, and names its compensations as it likes. The
-- leases of the processes are locked, so that one that ends knows what it has sent: either the send sees the end, or the end sees the send. 55P03:
-- another transaction is ending one, or extends its lease.
create or replace function pawl.process_sent_note (p_ids bigint[])
  returns void
  language plpgsql security definer set search_path = pawl, pg_temp
  set plan = keyed_cached
as $$
declare
  v_senders bigint[] := array(
    select distinct pawl.process_target_id(c.reply_to) from pawl.command c where c.id = any (p_ids) and c.reply_to like 'response:%' order by 1);
  v_held bigint[] := array(
    select l.id from unnest(v_senders) i (id)
    cross join lateral (select l.id from pawl.lease l where l.id = i.id for key share skip locked) l);
begin
  if exists (select from pawl.lease l where l.id = any (v_senders) and l.id <> all (v_held)) then
    raise exception 'the process that sends is locked by another transaction' using errcode = '55P03';
  end if;
  with noted as (
    insert into pawl.process_sent (id, sent_id, step, item, undo, aside)
    select t.id, c.id, t.step, t.item, t.undo, t.aside
    from pawl.command c
    cross join lateral pawl.target_read(c.reply_to) t
    where c.id = any (p_ids) and c.reply_to like 'response:%'
    on conflict do nothing
    returning id, sent_id, undo
  )
  insert into pawl.process_orphan (sent_id, id, compensates)
  select n.sent_id, n.id, true
  from noted n
  cross join lateral (select p.definition_id, p.phase from pawl.process p where p.id = n.id limit 1) p
  where p.definition_id is not null and not n.undo
    and (p.phase <> 'forward' or exists (select from pawl.outcome o where o.id = n.id))
  on conflict do nothing;
end
$$;

-- These have ended, or are being compensated: note what they have sent and what has not ended.
create or replace function pawl.process_orphan_note (p_ids bigint[], p_compensates boolean)
  returns void
  language sql security definer set search_path = pawl, pg_temp
as $$
  insert into pawl.process_orphan (sent_id, id, compensates)
  select s.sent_id, s.id, p_compensates
  from pawl.process_sent s
  where s.id = any (p_ids) and not exists (select from pawl.outcome o where o.id = s.sent_id)
  on conflict do nothing
$$;

-- Cancel these commands or children of one process. False where another transaction holds one of them: then some may be done.
create or replace function pawl.process_orphans_end (p_process_id uuid, p_compensates boolean, p_command_ids uuid[], p_domains text[])
  returns boolean
  language plpgsql security definer set search_path = pawl, pg_temp set lock_timeout = '20ms'
as $$
begin
  if p_compensates then
    return not exists (
      select from pawl.process_compensate(
        p_command_ids, array(select substr(d.name, 9) from unnest(p_domains) with ordinality d (name, ord) order by d.ord),
        'process ' || p_process_id, 'the process that started it has ended') c
      where c.verdict = 'LOCKED');
  end if;
  return not exists (
    select from pawl.command_cancel(p_command_ids, p_domains, 'process ' || p_process_id, 'the process that sent it has ended') c
    where c.verdict = 'LOCKED');
exception when others then
  if pawl.is_transient(sqlstate) then
    raise;
  end if;
  return false;
end
$$;

-- Cancel what has a note, at most p_limit of them: commands, and children, with compensation or without. Those of one process go together, or one
-- by one where another transaction holds some of them; these stay for a later call, behind all others. Returns how many notes are done.
create or replace function pawl.process_orphans_cancel (p_limit integer default 100)
  returns bigint
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
declare
  v_ids bigint[];
  v_busy bigint[] := '{}'::bigint[];
  v_done bigint[] := '{}'::bigint[];
  v_row record;
  v_one record;
  v_count bigint;
begin
  if (p_limit between 1 and 10000) is not true then
    raise exception 'limit must be from 1 to 10000' using errcode = 'QP001';
  end if;
  v_ids := array(select o.sent_id from pawl.process_orphan o order by o.tries, o.sent_id limit p_limit for update skip locked);
  for v_row in
    select p.command_id as process_id, o.compensates and n.name like 'process:%' as compensates,
           array_agg(s.command_id order by s.id) as command_ids, array_agg(n.name order by s.id) as domains, array_agg(s.id order by s.id) as ids
    from pawl.process_orphan o
    join pawl.command s on s.id = o.sent_id
    join pawl.command p on p.id = o.id
    cross join lateral (select n.name from pawl.domain_name n where n.id = s.domain_id limit 1) n
    where o.sent_id = any (v_ids) and not exists (select from pawl.outcome e where e.id = o.sent_id)
    group by 1, 2
  loop
    if pawl.process_orphans_end(v_row.process_id, v_row.compensates, v_row.command_ids, v_row.domains) then
      v_done := v_done || v_row.ids;
      continue;
    end if;
    for v_one in
      select u.command_id, u.domain, u.id from unnest(v_row.command_ids, v_row.domains, v_row.ids) u (command_id, domain, id) order by u.id
    loop
      exit when cardinality(v_busy) >= 20; -- 400 ms
      if pawl.process_orphans_end(v_row.process_id, v_row.compensates, array[v_one.command_id], array[v_one.domain]) then
        v_done := v_done || v_one.id;
      else
        v_busy := v_busy || v_one.id;
      end if;
    end loop;
    exit when cardinality(v_busy) >= 20;
  end loop;
  update pawl.process_orphan o set tries = o.tries + 1 where o.sent_id = any (v_busy);
  delete from pawl.process_orphan o
  where o.sent_id = any (v_ids)
    and (o.sent_id = any (v_done) or not exists (
      select from pawl.command c join pawl.command p on p.id = o.id
      where c.id = o.sent_id and not exists (select from pawl.outcome e where e.id = c.id)));
  get diagnostics v_count = row_count;
  return v_count;
end
$$;
