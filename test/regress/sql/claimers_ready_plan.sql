-- A poll for all claims that wait reads an index entry for each, whatever other domains have, and none for watermarks that nothing
-- can be behind.
create function pg_temp.poll (p_floor bigint)
  returns table (is_decided boolean, ready integer[])
  language sql
as $$
  select r.allocated = pawl.allocated(), r.ready
  from pawl.claimers_ready(
    array(select 'idle' || n from generate_series(1, 200) n) || '{busy,busy,busy,nowhere}',
    array(select case when n % 2 = 0 then E't\nu' end from generate_series(1, 200) n) || array[null, E't\nu', 'u', null],
    array_fill(p_floor, array[2040])) r
$$;
select count(pawl.domain_id('idle' || n)) from generate_series(1, 200) n;
select count(*) from pawl.send('busy', array_fill('t'::text, array[2000]), array_fill('1'::jsonb, array[2000]));
select count(*) from pawl.send('idle7', array_fill('v'::text, array[3]), array_fill('1'::jsonb, array[3]), p_priorities => '{0,5,9}');
select count(*) from pawl.send('idle8', array_fill('v'::text, array[3]), array_fill('1'::jsonb, array[3]));
update pg_class set relpages = 5000, reltuples = 1 where relname in ('ready', 'ready_pkey', 'command', 'command_pkey', 'domain_name');
select * from pg_temp.poll(0);
-- The rest of what is queued is of other types, or claimed.
select count(*) from pawl.claim(pawl.domain_id('idle7'), 10, 60000, array_fill(0::bigint, array[10]), null, 'w');
select * from pg_temp.poll(0);
select pg_stat_force_next_flush();
-- 2003 entries for the types that no command has, and few besides.
select s.seq_scan, i.idx_tup_read < 3 * 2003 + 2000 as few
from pg_stat_user_tables s join pg_stat_user_indexes i using (relid)
where s.relname = 'ready' and i.indexrelname = 'ready_pkey';
select * from pg_temp.poll(pawl.allocated());
select ready from pg_temp.poll(pawl.allocated() + 1); -- from before a restore
