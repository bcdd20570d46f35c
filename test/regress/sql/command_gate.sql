-- Pauses and limits: what a claim of such a domain finds. The clock moves by itself with claims alone.
set client_min_messages = warning;
\i ../fake_clock.sql
insert into pawl.fake_clock (at) values ('2026-01-05 12:00 UTC');
create function send (p_type text, p_count integer, p_key text default null) returns bigint language sql as $$
  select count(*) from pawl.send('shop', array_fill(p_type, array[p_count]), array_fill('1'::jsonb, array[p_count]),
    p_order_keys => case when p_key is not null then array(select p_key || n from generate_series(1, p_count) n) end) $$;
-- The types of what a claim finds, and after how many ms it finds more.
create function claim (p_limit integer, p_types text[] default null, out types text, out again bigint) language sql as $$
  update pawl.fake_clock set at = at + interval '100 us'; -- lines that were served had their turn
  select string_agg(c.type, ' ' order by c.type) filter (where c.id is not null), max(c.token) filter (where c.id is null)
  from pawl.claim(pawl.domain_id('shop'), p_limit, 60000, array_fill(0::bigint, array[10]), p_types, 'w') c $$;
create function complete (p_count integer) returns bigint language sql as $$
  select count(*) from (select l.id, l.token from pawl.lease l order by l.id limit p_count) l, pawl.settle(array[l.id], array[l.token], array['complete']) s where s.settled $$;

-- A paused type waits, others do not. The pause is taken back: nothing is left of it.
select send('a', 3), send('b', 2);
select pawl.domain_pause('shop', '{a}', 'ann', 'broken');
select pawl.domain_pause('shop', '{a}', 'bob', 'again');
select domain, type, reason, operator from pawl.domain_pauses('shop');
select * from claim(10);
select pawl.command_show(c.command_id) ->> 'worker_note' like 'type "a" is paused by ann since %: broken' as is_told from pawl.command c where c.type = 'a' limit 1;
-- One that is held back can be canceled.
select verdict from pawl.command_cancel(array(select command_id from pawl.command where type = 'a' order by id limit 1), null, 'ann', null);
select * from claim(10);
select pawl.domain_resume('shop', '{a}');
select * from claim(10);
select * from claim(10);
select count(*) from pawl.gate;
select complete(10);

-- At most two run; what ends or expires gives its place back.
select pawl.domain_limit_set('shop', null, 2);
select send('a', 5);
select * from claim(10);
select * from claim(10);
select complete(1);
select * from claim(10);
update pawl.fake_clock set at = at + interval '61 s';
select moved from pawl.requeue_due(100, '-infinity', 1000);
select * from claim(10);
select running, running_now from pawl.domain_limits('shop');
select complete(10), (claim(10)).types, complete(10), (claim(10)).types, complete(10);
-- What runs when the limit is set counts.
select pawl.domain_limit_remove('shop');
select send('a', 3);
select * from claim(2);
select pawl.domain_limit_set('shop', 'a', 2);
select * from claim(2);
select complete(10), (claim(10)).types, complete(10);
select pawl.domain_limit_remove('shop');

-- At most three begin in any second.
select pawl.domain_limit_set('shop', 'a', null, 3);
select send('a', 10), send('b', 1);
select * from claim(10);
update pawl.fake_clock set at = at + interval '480 ms';
select * from claim(10);
update pawl.fake_clock set at = at + interval '509 ms';
select * from claim(10);
update pawl.fake_clock set at = at + interval '25 ms';
select * from claim(2);
select * from claim(2);
-- With a burst: four at once after a rest, then three in each second.
select pawl.domain_limit_set('shop', 'a', null, 3, 1, 4);
select * from claim(10);
select * from claim(10);
update pawl.fake_clock set at = at + interval '334 ms';
select * from claim(10);
select pawl.domain_limit_remove('shop');
select complete(20);

-- Per key: the order key up to its slash. Keys take turns.
select pawl.domain_limit_set('shop', null, 2, p_per_key => true);
select send('k', 20, 'big/'), send('k', 3, 'small/');
select (claim(10)).types;
select pawl.limit_key(c.order_key), count(*) from pawl.lease l join pawl.command c on c.id = l.id group by 1 order by 1;
select * from claim(10);
select complete(10);
select (claim(1)).types, (claim(1)).types;
select pawl.limit_key(c.order_key), count(*) from pawl.lease l join pawl.command c on c.id = l.id group by 1 order by 1;
select pawl.domain_limit_set('shop', null, null, p_per_key => true);
select complete(10);
select (claim(30)).types;
select complete(30);
select pawl.domain_limit_remove('shop');

-- A command that starts at once by its send is queued; a claim that would see an old snapshot is refused.
select pawl.domain_pause('shop');
select number is null as is_queued from pawl.send_items(false, 'shop', '{a}', '{1}', null, null, null, null, null, null, null, null, p_tokens => '{7}', p_worker => 'w', p_lease_ms => 1000, p_after => array_fill(0::bigint, array[10]));
select * from claim(10);
select ready from pawl.claimers_ready('{shop}', array[null], array_fill(0::bigint, array[10]));
select pawl.domain_resume('shop');
select pawl.domain_limit_set('shop', null, 1);
begin isolation level repeatable read;
select * from claim(1);
rollback;

-- What is refused.
select pawl.domain_pause('no domain');
select pawl.domain_pause('shop', '{}');
select pawl.domain_pause('shop', array[null::text]);
select pawl.domain_limit_set('shop');
select pawl.domain_limit_set('shop', null, 0);
select pawl.domain_limit_set('shop', null, null, 5, 7);
select pawl.domain_limit_set('shop', null, 1, null, 1, 5);
select subject, name, action, operator, reason, details from pawl.control_event order by id limit 4;
