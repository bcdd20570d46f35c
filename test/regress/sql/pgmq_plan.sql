-- pgmq_plan.sql - on a filled queue a read touches few rows, whatever is hidden in front, and keeps the order.
-- What a transaction has touched is counted by the server, so the plans inside the functions are seen as well; the
-- counts of the transactions before are flushed away first.

select pgmq.create('q');
insert into pgmq.q_q (vt, message) select now() + interval '1 day', '1' from generate_series(1, 40000);
insert into pgmq.q_q (vt, message) select now(), '1' from generate_series(1, 60);
analyze pgmq.q_q;

create procedure touched (call text, most integer)
  language plpgsql as $$
declare
  v_ids  bigint[];
  v_seen record;
begin
  execute format('select array(select msg_id from pgmq.%s)', call) into v_ids;
  select seq_scan as full_scans, coalesce(idx_tup_fetch, 0) as rows into v_seen
  from pg_stat_xact_user_tables where relid = 'pgmq.q_q'::regclass;
  raise notice '%: % full scans, % rows, messages % to %', call, v_seen.full_scans,
    case when v_seen.rows <= most then 'few' else v_seen.rows::text end, v_ids[1], v_ids[cardinality(v_ids)];
end
$$;

-- Few visible behind many hidden.
select pg_stat_force_next_flush();
begin; call touched('read(''q'', 100, 10)', 1400); commit;
select pg_stat_force_next_flush();
begin; call touched('pop(''q'', 10)', 1400); commit;
-- None.
select count(*) from pgmq.read('q', 100, 100);
select pg_stat_force_next_flush();
begin; call touched('read(''q'', 100, 10)', 1400); commit;

-- Many visible behind many hidden, and statistics that know nothing of them.
insert into pgmq.q_q (vt, message) select now() + n * interval '1 us', '1' from generate_series(1, 20000) as n;
select pg_stat_force_next_flush();
begin; call touched('read(''q'', 100, 10)', 6500); commit;
select pg_stat_force_next_flush();
begin; call touched('pop(''q'', 10)', 6500); commit;

-- Many visible, some hidden in front.
select pgmq.purge_queue('q');
insert into pgmq.q_q (vt, message) select now() + n * interval '1 us', '1' from generate_series(1, 40000) as n;
analyze pgmq.q_q;
select count(*) from pgmq.read('q', 100, 1000);
select pg_stat_force_next_flush();
begin; call touched('read(''q'', 0, 10)', 3000); commit;
-- The same ones again: they were read last and have the lowest ids.
select pg_stat_force_next_flush();
begin; call touched('read(''q'', 0, 10)', 3000); commit;

-- Other readers have hidden four batches at the front: one walk over them is enough.
select pgmq.purge_queue('q');
insert into pgmq.q_q (vt, message) select now() + n * interval '1 us', '1' from generate_series(1, 40000) as n;
analyze pgmq.q_q;
select count(*) from pgmq.read('q', 100, 400);
select pg_stat_force_next_flush();
begin; call touched('read(''q'', 100, 100)', 650); commit;
select pg_stat_force_next_flush();
begin; call touched('pop(''q'', 100)', 750); commit;
-- The same where a few old messages stay hidden far before the rest.
select count(*) from pgmq.delete('q', array(select msg_id from pgmq.q_q order by msg_id offset 50 limit 20000));
select pg_stat_force_next_flush();
begin; call touched('read(''q'', 100, 100)', 300); commit;

-- Settling an array visits the primary key, whatever the statistics say of the table.
select pg_stat_force_next_flush();
begin; call touched('set_vt(''q'', array(select generate_series(120000, 140060)), 0)', 45000); rollback;

-- Groups: with the index of create_fifo_index, few groups in a long queue.
select pgmq.purge_queue('q');
insert into pgmq.q_q (vt, message, headers)
select now(), '1', jsonb_build_object('x-pgmq-group', n % 3) from generate_series(1, 40000) as n;
select pgmq.create_fifo_index('q');
analyze pgmq.q_q;
select pg_stat_force_next_flush();
begin; call touched('read_grouped(''q'', 100, 5)', 300); commit;
select pg_stat_force_next_flush();
begin; call touched('read_grouped_rr(''q'', 100, 5)', 300); commit;
select pg_stat_force_next_flush();
begin; call touched('read_grouped_head(''q'', 100, 5)', 300); commit;
