-- sent.sql - commands and children that processes have sent: known by the process, and canceled when it ends before them.
--
-- A process that ends, or begins to be compensated, only leaves a note (pawl.process_orphan) in its transaction. What it has sent is canceled by a
-- periodic task in transactions of its own, because the end of a child locks the child first and its parent then.
-- Lock order: rows of pawl.process_orphan by id, then as pawl.command_cancel and pawl.process_compensate.
-- Errors: QP001 the limit is out of range.

-- Commands of pawl.send_items that steps of processes have sent.
create or replace function pawl.process_sent_note (p_ids bigint[])
  returns void
  language sql security definer set search_path = pawl, pg_temp
as $$
  insert into pawl.process_sent (id, sent_id)
  select substring(c.reply_to from '^response:([0-9]+)/')::bigint, c.id
  from pawl.command c
  where c.id = any (p_ids) and c.reply_to like 'response:%'
  on conflict do nothing
$$;

-- These have ended, or are being compensated. Those that have sent something that has not ended get a note.
create or replace function pawl.process_orphan_note (p_ids bigint[], p_compensates boolean)
  returns void
  language sql security definer set search_path = pawl, pg_temp
as $$
  insert into pawl.process_orphan (id, compensates)
  select u.id, p_compensates
  from unnest(p_ids) u (id)
  where exists (
    select from pawl.process_sent s where s.id = u.id and not exists (select from pawl.outcome o where o.id = s.sent_id))
  on conflict (id) do nothing
$$;

-- Cancel what processes with a note have sent: commands, and children, with compensation or without. Returns how many notes are left over; one
-- whose commands cannot be canceled now stays for the next call.
create or replace function pawl.process_orphans_cancel (p_limit integer default 100)
  returns bigint
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
declare
  v_note record;
  v_sent record;
begin
  if (p_limit between 1 and 10000) is not true then
    raise exception 'limit must be from 1 to 10000' using errcode = 'QP001';
  end if;
  for v_note in
    select o.id, o.compensates, c.command_id from pawl.process_orphan o join pawl.command c on c.id = o.id
    order by o.id limit p_limit for update of o skip locked
  loop
    begin
      for v_sent in
        select c.command_id, n.name, n.name like 'process:%' as is_process
        from pawl.process_sent s
        join pawl.command c on c.id = s.sent_id
        cross join lateral (select n.name from pawl.domain_name n where n.id = c.domain_id limit 1) n
        where s.id = v_note.id and not exists (select from pawl.outcome o where o.id = s.sent_id)
        order by s.sent_id
      loop
        if v_sent.is_process and v_note.compensates then
          perform from pawl.process_compensate(
            array[v_sent.command_id], array[substr(v_sent.name, 9)], 'process ' || v_note.command_id, 'the process that started it has ended');
        else
          perform from pawl.command_cancel(
            array[v_sent.command_id], array[v_sent.name], 'process ' || v_note.command_id, 'the process that sent it has ended');
        end if;
      end loop;
      delete from pawl.process_orphan o where o.id = v_note.id;
    exception when others then
      if pawl.is_transient(sqlstate) then
        raise;
      end if; -- else another transaction holds what it has sent: the next call tries again
    end;
  end loop;
  delete from pawl.process_orphan o where not exists (select from pawl.command c where c.id = o.id); -- retention was faster
  return (select count(*) from pawl.process_orphan);
end
$$;
