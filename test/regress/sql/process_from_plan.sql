-- process_from_plan.sql - a retry from a step reads each record, and what was sent, some times, however many there are: not all of them for each.
set client_min_messages = warning; -- a start of a type that nothing runs says so

-- Rows that this transaction has read.
create function pg_temp.reads () returns bigint language sql volatile as $$
  select sum(t.seq_tup_read + coalesce(t.idx_tup_fetch, 0))::bigint from pg_stat_xact_user_tables t
  where t.schemaname = 'pawl' and t.relname in ('process_step', 'process_sent', 'process_response', 'command')
$$;
-- A process in code with p_count steps, and as many commands of which the replies have come and no record says so.
create function pg_temp.made (p_count integer) returns bigint language plpgsql as $$
declare
  v_process uuid := pawl.start('long', p_domain => 'shop');
  v_id bigint := pawl.process_number(v_process);
begin
  insert into pawl.process_step (id, step, started_at, ended_at, result)
  select v_id, 'step-' || n, pawl.now(), pawl.now(), '1' from generate_series(1, p_count) n;
  with sent as (
    insert into pawl.command (id, domain_id, command_id, type, payload, priority, max_attempts, created_at)
    select nextval('pawl.command_seq'), pawl.domain_find('process:shop'), gen_random_uuid(), 'sent', '{}', 5, 10, pawl.now()
    from generate_series(1, p_count) n returning id, command_id
  ), noted as (
    insert into pawl.process_sent (id, sent_id, step, item, undo, aside) select v_id, s.id, 'send-' || s.id, '{}', false, 0 from sent s
  )
  insert into pawl.process_response (id, kind, name, key, number, payload, at)
  select v_id, 'reply', 'send-' || s.id, s.command_id, s.id, '{"status": "COMPLETED", "result": 1}', pawl.now() from sent s;
  return v_id;
end
$$;
create function pg_temp.counted (p_count integer, p_from text, out records bigint, out is_set_aside boolean, out is_few boolean) language plpgsql as $$
declare
  v_id bigint := pg_temp.made(p_count);
  v_before bigint := pg_temp.reads();
begin
  select count(*) into records from pawl.records_from(array[v_id], p_from);
  is_set_aside := pawl.process_set_aside(array[v_id], p_from, 'ann', null) = array[v_id];
  is_few := pg_temp.reads() - v_before < 40 * p_count;
end
$$;
select pawl.start('other', p_domain => 'shop') is not null as it_exists;
analyze pawl.process_step, pawl.process_sent, pawl.process_response, pawl.command;
select * from pg_temp.counted(200, 'step-1');
select * from pg_temp.counted(1000, 'step-1');
select * from pg_temp.counted(1000, 'step-500');
