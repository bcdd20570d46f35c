-- backlog.sql - the numbers of pawl.backlog are counted: those of the statistics lag behind, and know no rows of an open transaction.

begin;
select count(*) from pawl.send('shop', array_fill('t'::text, array[5]), array_fill('1'::jsonb, array[5]), p_delays_ms => '{0,0,0,0,3600000}');
select count(*) from pawl.claim(pawl.domain_find('shop'), 2, 60000, array_fill(0::bigint, array[10]), null, 'w');
select ready, delayed, leased, in_tsq from pawl.backlog();
select s.verdict from pawl.command_cancel(array(select command_id from pawl.command order by id)) s;
select ready, delayed, leased, in_tsq from pawl.backlog();
commit;

-- Above 10000.
begin;
insert into pawl.delayed (id, due, domain_id, priority, attempt, max_attempts, extras) select n, now(), 1, 4, 0, 3, false from generate_series(1000, 10998) n;
select delayed from pawl.backlog();
insert into pawl.delayed (id, due, domain_id, priority, attempt, max_attempts, extras) select n, now(), 1, 4, 0, 3, false from generate_series(20000, 20005) n;
select delayed >= 10000 as many from pawl.backlog();
rollback;
select delayed from pawl.backlog();
