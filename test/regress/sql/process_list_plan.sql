-- process_list_plan.sql - a list by domain or type reads processes of that domain or type, however many others there are; also for a domain that has none,
-- with a status, and behind the first page.
set client_min_messages = warning; -- a start of a type that nothing runs says so
\set VERBOSITY terse
select d.is_new from pawl.process_define('big', 'order', '{"type": "order", "domain": "big", "steps": [{"name": "a", "set": {"a": 1}}]}', null, 'troubleshoot', null, '[{"name": "a", "kind": "set"}]') d;
select d.is_new from pawl.process_define('small', 'order', '{"type": "order", "domain": "small", "steps": [{"name": "a", "set": {"a": 1}}]}', null, 'troubleshoot', null, '[{"name": "a", "kind": "set"}]') d;
select d.is_new from pawl.process_define('small', 'refund', '{"type": "refund", "domain": "small", "steps": [{"name": "a", "set": {"a": 1}}]}', null, 'troubleshoot', null, '[{"name": "a", "kind": "set"}]') d;
select count(pawl.start(t, p_domain => d)) from (values ('big', 'order'), ('big', 'code'), ('empty', 'code'), ('old', 'code')) v (d, t);
select count(pawl.start(t, p_domain => 'small')) from generate_series(1, 3) n, unnest(array['order', 'refund', 'code', 'other']) t;
-- 60,000 others, of which half are run by code.
with sent as (
  insert into pawl.command (id, domain_id, command_id, type, payload, priority, max_attempts, created_at)
  select nextval('pawl.command_seq'), pawl.domain_find('process:big'), gen_random_uuid(), case n % 2 when 0 then 'order' else 'code' end, '{}', 5, 10, pawl.now()
  from generate_series(1, 60000) n
  returning id, domain_id, type
), ended as (
  insert into pawl.outcome (id, domain_id, status, attempts, ended_at, token) select id, domain_id, 'COMPLETED', 1, pawl.now(), 1 from sent
)
insert into pawl.process (id, domain_id, code_type, definition_id, state)
select s.id, s.domain_id, case s.type when 'code' then 'code' end, case s.type when 'order' then d.id end, '{}'
from sent s, pawl.process_definition d where d.domain = 'big';
-- Some are newer, and one was started by an earlier version, which stored neither domain nor type.
select count(pawl.start(t, p_domain => 'small')) from generate_series(1, 3) n, unnest(array['order', 'refund', 'code', 'other']) t;
update pawl.process p set domain_id = null, code_type = null from pawl.command c where c.id = p.id and c.domain_id = pawl.domain_find('process:old');
delete from pawl.process p using pawl.command c where c.id = p.id and c.domain_id = pawl.domain_find('process:empty');
update pawl.process p set phase = 'compensating' from pawl.command c where c.id = p.id and c.type = 'refund';
analyze pawl.process, pawl.command, pawl.outcome, pawl.process_definition, pawl.domain_name;

-- The processes of a list, whether they are the right ones in the right order, and whether it read few rows; -1: of a page that ended with its reads.
create function pg_temp.listed (p_domain text, p_type text, p_status text, p_before bigint, out processes bigint, out is_right boolean, out is_few boolean)
  language plpgsql
as $$
declare
  v_ids bigint[];
  v_before bigint := pg_temp.reads();
begin
  v_ids := array(select coalesce(l.id, -1) from pawl.process_list(p_domain, p_type, p_status, p_before => p_before, p_limit => 10) l);
  is_few := pg_temp.reads() - v_before < 1000;
  processes := cardinality(v_ids);
  is_right := v_ids = array(
    select p.id from pawl.process p join pawl.command c using (id) join pawl.domain_name n on n.id = c.domain_id
    where (p_domain is null or n.name = 'process:' || p_domain) and (p_type is null or c.type = p_type)
      and (p_before is null or p.id < p_before) and (p_status is null or pawl.process_status(p.id) = p_status)
    order by p.id desc limit 10);
end
$$;
create function pg_temp.reads () returns bigint language sql volatile as $$
  select sum(t.seq_tup_read + coalesce(t.idx_tup_fetch, 0))::bigint from pg_stat_xact_user_tables t
  where t.schemaname = 'pawl' and t.relname in ('process', 'command', 'outcome', 'lease', 'ready', 'delayed')
$$;
select f.domain, f.type, f.status, f.page, l.*
from (values ('small', null, null, 1), ('small', null, null, 2), ('small', 'order', null, 1), ('small', 'order', null, 2), ('small', 'other', null, 1),
             ('small', 'code', null, 2), ('small', 'none', null, 1), ('small', null, 'COMPLETED', 1), ('small', null, 'PENDING', 1),
             ('small', null, 'PENDING', 2), ('small', null, 'IN_PROGRESS', 1), ('small', null, 'WAITING_FOR_ASYNC', 1), ('small', null, 'FAILED', 1),
             ('small', 'refund', 'COMPENSATING', 1), ('small', 'order', 'COMPLETED', 1), (null, 'refund', null, 1), (null, 'other', null, 1),
             (null, 'none', null, 1), ('empty', null, null, 1), ('empty', null, 'COMPLETED', 1), ('old', null, null, 1), ('unknown', null, null, 1),
             ('big', 'order', null, 1), ('big', 'code', 'COMPLETED', 1), ('big', null, null, 1)) f (domain, type, status, page)
cross join lateral pg_temp.listed(f.domain, f.type, f.status, case f.page when 2 then (select min(c.id) + 10000 from pawl.command c) end) l;

-- Batches are joined: more are read than one of them has.
select count(*), count(distinct l.id), bool_and(l.domain = 'big' and l.type = 'order') as is_right
from pawl.process_list('big', 'order', p_looks => 2500, p_limit => 1000, p_before => (select max(id) from pawl.process)) l;
select count(l.id) as found, count(*) as rows from pawl.process_list('big', 'order', 'COMPLETED', p_text => 'nothing', p_looks => 2500) l;
