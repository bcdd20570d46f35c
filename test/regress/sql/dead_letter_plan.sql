-- dead_letter_plan.sql - on a filled table no function reads more than it needs: index scans, few rows.
-- What a transaction has touched is counted by the server, so the plans inside the functions are seen as well; the
-- counts of the transactions before are flushed away first.

insert into pawl.failed_operations (operation_type, operation_key, operation_data, error_message, error_code, created_at,
                                    status, lease, lease_until, next_retry_at)
select case when n % 10 = 0 then 'pay' else 'unheard_of' end, n::text, '{}', '', '', pawl.now(),
       s.status, 1, case when s.status = 'retrying' then pawl.now() - interval '1 s' end, pawl.now() - interval '1 day'
from generate_series(1, 40000) as n,
     lateral (select case when n <= 30000 then 'resolved' when n <= 39900 then 'pending' when n <= 39950 then 'retrying'
                          else 'failed' end) as s (status);
analyze pawl.failed_operations;

create function touched () returns table (full_scans bigint, few_rows boolean)
  language sql as $$
  select seq_scan, coalesce(idx_tup_fetch, 0) < 200
  from pg_stat_xact_user_tables where relid = 'pawl.failed_operations'::regclass
$$;

-- Claim, seven times in one session: the later ones use the generic plan.
select count(*) from generate_series(1, 6), pawl.dead_letter_claim(array['none'], 10, 60000, 3);
select pg_stat_force_next_flush();
begin;
select count(*) from pawl.dead_letter_claim(array['pay'], 20, 60000, 3);
select * from touched();
commit;

select pg_stat_force_next_flush();
begin;
select count(*)
from pawl.dead_letter_settle(array(select 39900::bigint + n from generate_series(1, 20) n), array_fill(2::bigint, array[20]),
                             array_fill(true, array[20]), array_fill(''::text, array[20]), array_fill(''::text, array[20]), 3, 0);
select * from touched();
commit;

select pg_stat_force_next_flush();
begin;
select count(*) from pawl.dead_letter_put(array['pay'], array['39890'], array['{}']::jsonb[], array[''], array[''], 0);
select count(*) from pawl.dead_letter_retry(array[39951, 39952]);
select count(*) from pawl.dead_letter_delete(array[39951, 39952]);
select pawl.dead_letter_hold(39999, 1);
select * from touched();
commit;

-- What people ask for: the open ones, newest first, and how many there are.
explain (costs off)
select id from pawl.failed_operations where status <> 'resolved' and id < 9223372036854775807 order by id desc limit 20;
set enable_bitmapscan = off;
vacuum analyze pawl.failed_operations;
explain (costs off)
select count(*) from pawl.failed_operations where status <> 'resolved';
reset enable_bitmapscan;
drop function touched();
