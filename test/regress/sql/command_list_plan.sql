-- command_list_plan.sql - listings of queued commands and the question whether work is left read as many rows as they answer with, not
-- as many as there are.
\set VERBOSITY terse
select count(*) from pawl.send('a', array_fill('t'::text, '{5000}'), array_fill('1'::jsonb, '{5000}'));
select count(*) from pawl.send('b', array_fill('t'::text, '{5000}'), array_fill('1'::jsonb, '{5000}'), p_priorities => array_fill(9::smallint, '{5000}'));
select count(*) from pawl.send('b', array_fill('t'::text, '{5000}'), array_fill('1'::jsonb, '{5000}'), p_delays_ms => array_fill(3600000::bigint, '{5000}'));
select count(*) from pawl.send('c', array_fill('t'::text, '{3}'), array_fill('1'::jsonb, '{3}'), p_delays_ms => '{0,3600000,0}'::bigint[]);
-- Some came back: they are queued at a later position.
update pawl.delayed set due = pawl.now() - interval '1 s' where id in (select id from pawl.delayed order by id limit 200);
select moved from pawl.requeue_due(1000, 'epoch', 1000);

create function pg_temp.pending (p_domain text, p_before bigint, p_limit integer) returns bigint[] language sql as $$
  select array(select p.id from pawl.pending_ids(case when p_domain is not null then pawl.domain_find(p_domain) end, null, p_before, p_limit, null) p where p.hit)
$$;
-- The right ones, in order.
create function pg_temp.simply (p_domain text, p_before bigint, p_limit integer) returns bigint[] language sql as $$
  select array(select p.id from (select r.id, r.domain_id from pawl.ready r union all select d.id, d.domain_id from pawl.delayed d) p
               where p.id < p_before and (p_domain is null or p.domain_id = pawl.domain_find(p_domain)) order by p.id desc limit p_limit)
$$;
select c.domain, c.before, c.most, pg_temp.pending(c.domain, c.before, c.most) = pg_temp.simply(c.domain, c.before, c.most) as same
from (select d.domain, b.before, m.most
      from (values (null), ('a'), ('b'), ('c')) d (domain), (values (9223372036854775807), (10150), (7000), (1)) b (before),
           (values (1), (100), (null)) m (most)) c
order by 1, 2, 3;

-- Few rows are read.
select pg_stat_force_next_flush();
begin;
select count(*) from pawl.command_list(null, 'PENDING', null, null, 10);
select count(*) from pawl.command_list('b', 'PENDING', null, null, 10);
select relname, seq_tup_read as scanned, coalesce(idx_tup_fetch, 0) < 500 as few
from pg_stat_xact_user_tables where relname in ('ready', 'delayed') order by relname;
rollback;
select pg_stat_force_next_flush();
begin;
select pawl.has_work(pawl.domain_find('a'), null) as a, pawl.has_work(pawl.domain_find('c'), null) as c, pawl.has_work(1, null) as none;
delete from pawl.ready where domain_id = pawl.domain_find('c');
select pawl.has_work(pawl.domain_find('c'), null) as delayed, pawl.has_work(pawl.domain_find('c'), '{x}') as other;
select relname, seq_tup_read as scanned, coalesce(idx_tup_fetch, 0) < 100 as few
from pg_stat_xact_user_tables where relname = 'delayed' order by relname;
rollback;
