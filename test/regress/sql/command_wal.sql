-- command_wal.sql - how many WAL records of tables a command takes that is sent, claimed and completed: a claim locks its rows, because others are
-- skipped by it, and a settle does not.
create extension pg_walinspect;
set synchronous_commit = on; -- so that all records are written when they are read
create view records as
select t.relname, r.record_type
from (values ('command'), ('ready'), ('lease'), ('outcome')) t (relname)
join (select r.record_type, r.block_ref
      from pg_get_wal_records_info(current_setting('test.from')::pg_lsn, current_setting('test.upto')::pg_lsn) r
      where r.resource_manager = 'Heap') r
  on r.block_ref like format('%%/%s/%s %%', (select d.oid from pg_database d where d.datname = current_database()),
                             pg_relation_filenode('pawl.' || t.relname));
create table leased (id bigint, token bigint);

select set_config('test.from', pg_current_wal_insert_lsn()::text, false) is not null as begins;
select count(*) from pawl.send('wal', array_fill('a'::text, array[100]), array_fill('1'::jsonb, array[100]));
insert into leased
select c.id, c.token from pawl.claim(pawl.domain_find('wal'), 100, 60000, array_fill(0::bigint, array[10]), null, 'w') c;
select s.status, count(*)
from (select array_agg(l.id) as ids, array_agg(l.token) as tokens from leased l) l,
     pawl.settle_items(true, l.ids, l.tokens, array_fill('complete'::text, array[100]), null, null, null, null, null) s
group by s.status;
select set_config('test.upto', pg_current_wal_insert_lsn()::text, false) is not null as ends;
create table written ();
-- INSERT+INIT is the first row of a page.
select r.relname, replace(r.record_type, '+INIT', '') as record, count(*) from records r group by 1, 2 order by 1, 2;
