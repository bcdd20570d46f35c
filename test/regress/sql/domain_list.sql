-- domain_list.sql - what domains have where, by name and by depth; estimates above the bound; the plan reads by index.

begin;
select count(*) from pawl.send('shop', array_fill('t'::text, array[5]), array_fill('1'::jsonb, array[5]), p_delays_ms => '{0,0,0,0,3600000}');
select count(*) from pawl.send('mail', array_fill('t'::text, array[2]), array_fill('1'::jsonb, array[2]));
select count(*) from pawl.claim(pawl.domain_find('shop'), 2, 60000, array_fill(0::bigint, array[10]), null, 'w');
select domain, queued, delayed, parked, running, in_tsq, oldest_at is not null as has_oldest, oldest_s, estimated from pawl.domain_list();
select domain, queued from pawl.domain_list(p_after => 'mail');
select domain, queued from pawl.domain_list('mail');
select domain from pawl.domain_list('nothing');
select domain, queued from pawl.domain_list(p_order => 'depth');
commit;

-- Wrong arguments.
select * from pawl.domain_list(p_limit => 0);
select * from pawl.domain_list(p_limit => null);
select * from pawl.domain_list(p_order => 'size');
select * from pawl.domain_list(p_order => null);

-- Above the bound, also where the numbers have holes, and in two priorities. The statistics of the table bound an estimate.
insert into pawl.ready (domain_id, priority, pos, id, attempt, max_attempts, extras)
  select pawl.domain_find('mail'), 4 + n % 2, 1000 + 3 * n, 1000 + 3 * n, 0, 3, false from generate_series(1, 60000) n;
select pg_stat_force_next_flush();
select abs(queued - 60002) < 600 as is_near, estimated from pawl.domain_list('mail');
select domain from pawl.domain_list(p_order => 'depth', p_limit => 1);
select domain, ready > 59000 as ready, delayed, parked, leased, in_tsq from pawl.backlog_domains() order by ready;
