-- process_records_read.sql - a record is looked up by its whole key, also by a plan that was made before there were many: a report of a thousand records reads
-- that many, and not the history of the process for each.
set client_min_messages = warning; -- a start of a type that nothing runs says so

select count(pawl.start('order', '{}', '018f0000-0000-7000-8000-000000000001', 'shop'));
select count(*) from pawl.claim(pawl.domain_find('process:shop'), 1, 60000, array_fill(0::bigint, array[10]), null, 'w');
-- The plans are made now, while the table is small. A record with a patch, and how many there are.
select w.verdict from pawl.lease l, pawl.process_write(array[l.id], array[l.token], '{"{\"step\": \"first\"}"}', null, null, '{"{\"a\": 1}"}',
  null, null, null, null, null, null, null, null, null, null) w;
select c.value, c.is_known from pawl.lease l, pawl.process_counted(array[l.id], array[l.token], '{"{\"step\": \"first\"}"}', 2) c;
insert into pawl.process_step (id, step, started_at, ended_at) select l.id, 's' || n, pawl.now(), pawl.now() from pawl.lease l, generate_series(2, 3000) n;

create function fetched () returns bigint language sql volatile as $$
  select coalesce(seq_tup_read + idx_tup_fetch, 0) from pg_stat_xact_all_tables where relid = 'pawl.process_step'::regclass
$$;
begin;
select count(*), bool_or(c.is_known) as is_known
from pawl.lease l, pawl.process_counted(array_fill(l.id, array[1000]), array_fill(l.token, array[1000]),
  array(select jsonb_build_object('step', 't' || n) from generate_series(1, 1000) n), 4000) c;
select fetched() < 20000 as reads_few;
commit;
begin;
select w.verdict, count(*)
from pawl.lease l, pawl.process_write(array_fill(l.id, array[1000]), array_fill(l.token, array[1000]),
  array(select jsonb_build_object('step', 't' || n) from generate_series(1, 1000) n), null, null,
  array_fill('{"b": 1}'::jsonb, array[1000]), null, null, null, null, null, null, null, null, null, null) w
group by 1;
select fetched() < 20000 as reads_few;
rollback;
