-- pgmq_queue.sql - queues come and go, under PGMQ's names and with PGMQ's words.

-- The types.
select t.typname as type, string_agg(a.attname || ' ' || format_type(a.atttypid, a.atttypmod), ', ' order by a.attnum) as columns
from pg_type t
join pg_attribute a on a.attrelid = t.typrelid and a.attnum > 0
where t.typnamespace = 'pgmq'::regnamespace and t.typname in ('message_record', 'queue_record', 'metrics_result')
group by t.typname
order by t.typname;
\d pgmq.meta
\d pgmq.notify_insert_throttle
\d pgmq.topic_bindings

-- Every function that clients call: its parameters, their names and defaults, and what it returns.
select p.proname as function, pg_get_function_arguments(p.oid) as arguments, pg_get_function_result(p.oid) as result
from pg_proc p
where p.pronamespace = 'pgmq'::regnamespace and p.proname not like '\_%'
order by p.proname, pg_get_function_arguments(p.oid);

-- A queue is two tables, their indexes and a row.
select pgmq.create('first');
\d pgmq.q_first
\d pgmq.a_first
select pgmq.create_unlogged('Second-One');
select relname, relpersistence from pg_class where relname in ('q_second-one', 'a_second-one') order by 1;
select queue_name, is_partitioned, is_unlogged, created_at <= now() as created from pgmq.list_queues();
select tablename from pg_tables where schemaname = 'pgmq' order by 1;
select pgmq.create_non_partitioned(queue_name => 'first');
select count(*) from pgmq.list_queues();

-- Names.
select pgmq.create(repeat('a', 48));
select pgmq.create(repeat('a', 47));
select tablename from pg_tables where tablename like 'q\_aaa%';
select indexname from pg_indexes where tablename like '__aaaa%' order by 1;
select pgmq.drop_queue(repeat('a', 47));
select pgmq.create('dollar$');
select pgmq.create('two--hyphens' || repeat('a', 47));
select pgmq.create('semi;colon');
select pgmq.create('quote''d');
select pgmq.delete('first where false; drop table pgmq.meta; delete from pgmq.q_first', 1);
select pgmq.format_table_name('Cat-Dog', 'q'), pgmq.format_table_name(queue_name => 'cat', prefix => 'a');
select pgmq.validate_queue_name(repeat('a', 48));

-- A queue that is not there; and every refusal of ours is a plain exception.
do $$
declare
  v_call text;
begin
  foreach v_call in array array[
    $c$send('nowhere', '1')$c$, $c$send_batch('nowhere', array['1']::jsonb[])$c$, $c$read('nowhere', 1, 1)$c$,
    $c$read('nowhere', 0, 1)$c$, $c$read('nowhere', 1, 1, '1')$c$, $c$read_grouped('nowhere', 1, 1)$c$, $c$pop('nowhere')$c$,
    $c$set_vt('nowhere', 1, 1)$c$, $c$delete('nowhere', 1)$c$, $c$delete('nowhere', array[1])$c$, $c$archive('nowhere', 1)$c$,
    $c$metrics('nowhere')$c$, $c$purge_queue('nowhere')$c$, $c$create_fifo_index('nowhere')$c$, $c$create(repeat('a', 48))$c$]
  loop
    begin
      execute 'select pgmq.' || v_call;
      raise notice '%: no error', v_call;
    exception when others then
      raise notice '%: % %', v_call, sqlstate, sqlerrm;
    end;
  end loop;
end
$$;

-- In a transaction.
begin;
select pgmq.create('third');
rollback;
select count(*) from pg_tables where tablename like '__third';
begin;
select pgmq.acquire_queue_lock('first');
select pgmq.acquire_queue_lock('First'); -- a transaction does not wait for itself
select mode, granted from pg_locks where locktype = 'advisory' and pid = pg_backend_pid(); -- every login could take such a lock
rollback;

-- Purge: how many; the ids go on.
select pgmq.send_batch('first', array['1', '2', '3']::jsonb[]);
select pgmq.purge_queue('first');
select pgmq.purge_queue('first');
select pgmq.send('first', '4');

-- Metrics.
select pgmq.create('measured');
select queue_name, queue_length, newest_msg_age_sec, oldest_msg_age_sec, total_messages, scrape_time = now() as now,
       queue_visible_length, default_partition_length
from pgmq.metrics('measured');
select count(*) from pgmq.send_batch('measured', array['1', '2', '3', '4', '5']::jsonb[]);
select count(*) from pgmq.send_batch('measured', array['6', '7']::jsonb[], 100);
select pgmq.archive('measured', 1);
update pgmq.q_measured set enqueued_at = now() - interval '100 s' where msg_id = 2;
update pgmq.q_measured set enqueued_at = now() - interval '10 s' where msg_id > 2;
select queue_name, queue_length, newest_msg_age_sec between 10 and 60 as newest, oldest_msg_age_sec between 100 and 160 as oldest,
       total_messages, queue_visible_length
from pgmq.metrics('measured');
select queue_name, queue_length from pgmq.metrics_all();

-- Indexes for groups, twice.
select pgmq.create_fifo_index('first');
select pgmq.create_fifo_index('first');
select pgmq.create_fifo_indexes_all();
select tablename, indexname from pg_indexes where indexname ~ '_(fifo|group)_idx$' order by 1, 2;

-- What is going.
select pgmq.detach_archive('first');
select pgmq.drop_queue('first', false);
select pgmq.drop_queue('first');
select pgmq.drop_queue('nowhere', true);
select pgmq.drop_queue('nowhere');
select pgmq.drop_queue(null);
select pgmq.drop_queue('SECOND-one');
select tablename from pg_tables where schemaname = 'pgmq' order by 1;
select queue_name from pgmq.list_queues();

-- What only the extension does.
select pgmq.create_partitioned('parts');
select pgmq.create_partitioned(repeat('p', 48));
select pgmq.create_partitioned('dollar$');
select pgmq.create_partitioned('parts', '10', '100', 0);
select pgmq.convert_archive_partitioned('nowhere');
select pgmq.convert_archive_partitioned('measured');
create extension hstore;
update pg_extension set extname = 'pg_partman' where extname = 'hstore';
select pgmq.create_partitioned('parts');

-- Names that an index or a sequence of another queue would have.
select pgmq.create('victim_vt_idx');
select pgmq.create('victim_MSG_ID_SEQ');
select pawl.send('mail', 'hello', p_reply_to => 'victim_vt_idx');
