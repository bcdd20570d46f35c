-- Order keys: commands of one domain with the same key run one at a time, in the order of sending.
\ir ../fake_clock.sql
insert into pawl.fake_clock (at) values ('2026-01-01 00:00 UTC');
create function claim (p_limit integer default 10, p_types text[] default null) returns table (payload jsonb, attempt smallint)
  language sql as $$
    select c.payload, c.attempt
    from pawl.claim(pawl.domain_find('shop'), p_limit, 30000, array_fill(0::bigint, array[10]), p_types, 'w') c
    order by c.id
  $$;
create function settle (p_payload jsonb, p_outcome text default 'complete', p_delay_ms bigint default null) returns text
  language sql as $$
    select s.status
    from pawl.lease l join pawl.command c on c.id = l.id
    cross join lateral pawl.settle(array[l.id], array[l.token], array[p_outcome], null, array['why'], array[p_delay_ms]) s
    where c.payload = p_payload
  $$;
-- Where each command is.
create function places () returns table (payload jsonb, place text)
  language sql as $$
    select c.payload, case when o.id is not null then o.status when l.id is not null then 'leased' when d.id is not null then 'delayed'
                           when t.id is not null then 'tsq' when p.id is not null then 'parked'
                           when r.id is not null then 'ready' || coalesce(' ' || r.order_key, '') else 'NOWHERE' end
    from pawl.command c
    left join pawl.outcome o on o.id = c.id
    left join pawl.lease l on l.id = c.id
    left join pawl.delayed d on d.id = c.id
    left join pawl.tsq t on t.id = c.id
    left join pawl.parked p on p.id = c.id
    left join pawl.ready r on r.id = c.id
    order by c.id
  $$;
-- Invariants 1 and 2 of sql/bus/order.sql; no row.
create view broken as
  select 'parked without a turn' as what, p.order_key from pawl.parked p
  where not exists (select from pawl.order_turn t where t.domain_id = p.domain_id and t.order_key = p.order_key)
  union all
  select 'two at once', c.order_key from pawl.command c
  where c.order_key is not null
    and (exists (select from pawl.lease l where l.id = c.id) or exists (select from pawl.delayed d where d.id = c.id))
    and not exists (select from pawl.order_turn t where t.id = c.id);

-- One at a time, the others are parked; a command without a key and one with another key are not held up.
select count(*) from pawl.send(p_order_keys => array['a', 'a', 'a', null, 'b'], p_domain => 'shop', p_types => array_fill('t'::text, array[5]),
  p_payloads => array['1', '2', '3', '4', '5']::jsonb[]);
select * from places();
select * from claim();
select * from places();
select * from claim();
select settle('1'), settle('4');
select * from places();
select * from claim();
select settle('2'), settle('5');
select * from claim();
select settle('3');
select * from pawl.order_turn;
select count(*) from pawl.parked;

-- Priorities count between keys, not within one.
select pawl.send('shop', 't', '11', p_order_key => 'a', p_priority => 1) is not null,
       pawl.send('shop', 't', '12', p_order_key => 'a', p_priority => 9) is not null,
       pawl.send('shop', 't', '13', p_order_key => 'b', p_priority => 5) is not null;
select * from claim(1);
select settle('13');
select * from claim(1);
select settle('11');
select * from claim(1);
select settle('12');

-- A retry keeps the key, at once and delayed, and so do a rescue and a release.
select count(*) from pawl.send(p_order_keys => array['a', 'a'], p_domain => 'shop', p_types => array['t', 't'], p_payloads => array['21', '22']::jsonb[]);
select * from claim();
select settle('21', 'retry', 0);
select * from claim();
select settle('21', 'retry', 5000);
select * from claim();
select * from places() where payload in ('21', '22');
update pawl.fake_clock set at = at + interval '6 s';
select moved from pawl.requeue_due(10, '-infinity', 0);
select * from claim();
select pawl.release(array_agg(id), array_agg(token)) from pawl.lease;
select * from claim();
update pawl.fake_clock set at = at + interval '60 s';
select moved from pawl.requeue_due(10, '-infinity', 0);
select * from broken;
select * from places() where payload in ('21', '22');

-- A command in the troubleshooting queue holds its key. The operator's decision lets the next one go.
select * from claim();
select verdict from pawl.tsq_decide(array(select command_id from pawl.command where payload = '21'), 'retry', 'ann');
select * from claim();
select settle('21', 'fail');
select * from claim();
select verdict from pawl.tsq_decide(array(select command_id from pawl.command where payload = '21'), 'cancel', 'ann');
select * from claim();
select settle('22', 'reject');
select * from pawl.order_turn;

-- By policy it releases its key. The operator's retry waits for the key again, in the order of sending.
select pawl.retry_policy_set('shop', 'u', null, 'release');
select pawl.retry_policy_set('shop', 'u', null, 'keep');
select type, delays_ms, is_default, order_key from pawl.retry_policy_list('shop');
select count(*) from pawl.send(p_order_keys => array['a', 'a', 'a'], p_domain => 'shop', p_types => array['u', 'u', 'u'],
  p_payloads => array['31', '32', '33']::jsonb[]);
select * from claim();
select settle('31', 'fail');
select * from places() where payload in ('31', '32', '33');
select * from claim();
select verdict from pawl.tsq_decide(array(select command_id from pawl.command where payload = '31'), 'retry', 'ann');
select * from claim();
select * from places() where payload in ('31', '32', '33');
select settle('32');
select * from claim();
select settle('31', 'fail');
select * from claim();
select settle('33');
select verdict from pawl.tsq_decide(array(select command_id from pawl.command where payload = '31'), 'complete', 'ann');
select * from pawl.order_turn;
select pawl.retry_policy_set('shop', 'u', null);
select count(*) from pawl.retry_policy;

-- Cancellation: of a command that is parked, of one that no claim has seen, and of the one that has the key.
select count(*) from pawl.send(p_order_keys => array['a', 'a', 'a', 'a'], p_domain => 'shop', p_types => array_fill('t'::text, array[4]),
  p_payloads => array['41', '42', '43', '44']::jsonb[]);
select verdict from pawl.cancel(array(select command_id from pawl.command where payload = '41'));
select * from claim();
select verdict from pawl.cancel(array(select command_id from pawl.command where payload = '43'));
select settle('42', 'retry', 5000);
select verdict from pawl.cancel(array(select command_id from pawl.command where payload = '42'));
select * from places() where payload in ('41', '42', '43', '44');
select * from claim();
select settle('44');
select * from pawl.order_turn;

-- A delayed command keeps its place, and later ones wait for it.
select pawl.send('shop', 't', '51', p_order_key => 'a') is not null,
       pawl.send('shop', 't', '52', p_order_key => 'a', p_delay => '10 s') is not null,
       pawl.send('shop', 't', '53', p_order_key => 'a') is not null,
       pawl.send('shop', 't', '54', p_order_key => 'b', p_delay => '10 s') is not null;
select * from claim();
select * from places() where payload in ('51', '52', '53', '54');
select settle('51');
select * from claim();
select * from places() where payload in ('51', '52', '53', '54');
update pawl.fake_clock set at = at + interval '10 s';
select moved from pawl.requeue_due(10, '-infinity', 0);
select * from claim();
select settle('52'), settle('54');
select * from claim();
select settle('53');
select * from pawl.order_turn;

-- A claim of one type gives the key to the first command, whatever its type is.
select pawl.send('shop', 'u', '61', p_order_key => 'a') is not null, pawl.send('shop', 't', '62', p_order_key => 'a') is not null;
select * from claim(10, array['t']);
select * from places() where payload in ('61', '62');
select * from claim(10, array['t']);
select * from claim(10, array['u']);
select settle('61');
select * from claim(10, array['t']);
select settle('62');

-- The same id again is the same command.
select is_new, status from pawl.send(p_order_keys => array['a', 'a'], p_domain => 'shop', p_types => array['t', 't'],
  p_payloads => array['71', '72']::jsonb[],
  p_command_ids => array['00000000-0000-0000-0000-000000000071', '00000000-0000-0000-0000-000000000072']::uuid[]);
select * from claim();
select is_new, status from pawl.send(p_order_keys => array['a', 'a'], p_domain => 'shop', p_types => array['t', 't'],
  p_payloads => array['71', '72']::jsonb[],
  p_command_ids => array['00000000-0000-0000-0000-000000000071', '00000000-0000-0000-0000-000000000072']::uuid[]);
-- With another key it is not.
select is_new, refusal from pawl.send('shop', array['t'], array['71']::jsonb[], array['00000000-0000-0000-0000-000000000071']::uuid[],
  p_order_keys => array['b']);
-- What a command waits for, and lists.
select s ->> 'status' as status, s ->> 'order_key' as order_key, s ->> 'waits_for' as waits_for
from pawl.command c, lateral pawl.command_show(c.command_id) s where c.payload in ('71', '72') order by c.id;
select l.command_id, l.status from pawl.command_list('shop', 'PENDING') l;
select l.command_id, l.status from pawl.command_list(null, 'PENDING', 't') l;
select pawl.command_count('shop', 'PENDING'), pawl.has_work(pawl.domain_find('shop'), null);
select settle('71');
select * from claim();
select settle('72');

-- Payloads that do not fit into one claim: what got its key and was not leased is leased by the next claim.
select count(*) from pawl.send(p_order_keys => array['a', 'b', 'b'], p_domain => 'shop', p_types => array['t', 't', 't'],
  p_payloads => array[to_jsonb(repeat('x', 8000000)), to_jsonb(repeat('y', 8000000)), '83']);
select left(payload #>> '{}', 1) from claim();
select left(payload #>> '{}', 1) from claim();
select left(payload #>> '{}', 1) from claim();
select count(*) from pawl.lease l, lateral pawl.settle(array[l.id], array[l.token], array['complete']) s;
select * from claim();
select settle('83');

-- A transaction with an old snapshot cannot tell that nothing is parked: the key is passed on by the next requeue.
select pawl.send('shop', 't', '91', p_order_key => 'a') is not null;
select * from claim();
begin isolation level repeatable read;
select settle('91');
commit;
select order_key, id = (select id from pawl.order_handover) as is_handed_over from pawl.order_turn;
select pawl.has_work(pawl.domain_find('shop'), null);
select moved from pawl.requeue_due(10, '-infinity', 0);
select count(*) from pawl.order_turn;
select count(*) from pawl.order_handover;

-- What cannot be a key is refused.
select pawl.send('shop', 't', '1', p_order_key => '');
select pawl.send('shop', 't', '1', p_order_key => repeat('x', 201));
select pawl.send('shop', 't', '1', p_order_key => null::text) is not null as "sent without a key";
select * from pawl.send(p_order_keys => array['a', ''], p_domain => 'shop', p_types => array['t', 't'], p_payloads => array['1', '2']::jsonb[]);
select * from pawl.send(p_order_keys => array['a'], p_domain => 'shop', p_types => array['t', 't'], p_payloads => array['1', '2']::jsonb[]);
select * from pawl.send(p_order_keys => '[0:1]={a,b}'::text[], p_domain => 'shop', p_types => array['t', 't'], p_payloads => array['1', '2']::jsonb[]);
-- Calls without a key mean the same as ever.
select pawl.send('shop', 't', '101', '00000000-0000-0000-0000-000000000101');
select pawl.send('shop', 't', '102'::jsonb, '00000000-0000-0000-0000-000000000102'::uuid);
select count(*) from pawl.send('shop', array['t'], array['103']::jsonb[], null);
select count(*) from pawl.send('shop', array['t'], array['104']::jsonb[], array['00000000-0000-0000-0000-000000000104']::uuid[], null, null);
select count(*) from pawl.command where order_key is not null and payload in ('101', '102', '103', '104');

select * from broken;
select place, count(*) from places() group by place order by place;

-- A claim that has passed over many commands of busy keys leases no more than it was asked for.
select count(*) from pawl.claim(pawl.domain_find('shop'), 10, 30000, array_fill(0::bigint, array[10]), null, 'w') c,
  lateral pawl.settle(array[c.id], array[c.token], array['complete']) s;
select count(*) from pawl.send('shop', array_fill('t'::text, array[100]), array_fill('200'::jsonb, array[100]),
  p_order_keys => array_fill('a'::text, array[30]) || array_fill(null::text, array[70]));
select count(*) from claim(1);
select count(*) from claim(1);
select count(*) from claim(20);
select place, count(*) from places() where payload = '200' group by place order by place;

-- One chunk may span priorities: the keys that are free go to the highest ones, not to the first that were sent.
select pawl.send('inverted', 'a', '1'::jsonb, p_priority => 9, p_order_key => 'K1') is not null as sent;
select count(*) from pawl.claim(pawl.domain_find('inverted'), 1, 60000, array_fill(0::bigint, array[10]), null, 'w');
select count(pawl.send('inverted', type, '1'::jsonb, p_priority => priority, p_order_key => key))
from (values ('b', 5, 'B'), ('a2', 9, 'K1'), ('a3', 9, 'A')) v (type, priority, key);
select c.type, c.priority from pawl.claim(pawl.domain_find('inverted'), 1, 60000, array_fill(0::bigint, array[10]), null, 'w') c;
