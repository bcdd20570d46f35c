-- send_start.sql - a send leases what may start on a free handler of its sender, as a claim would, and queues the rest.
\set after 'array_fill(0::bigint, array[10])'

create function send (
  p_tokens bigint[], p_types text[] default null, p_priorities smallint[] default null, p_keys text[] default null, p_attempts smallint[] default null,
  p_ids uuid[] default null, p_delays bigint[] default null, p_worker_types text[] default null, p_after bigint[] default array_fill(0::bigint, array[10]),
  p_domain text default 'shop')
  returns table (ord integer, is_new boolean, status text, is_started boolean, payload jsonb)
  language sql
as $$
  select s.ord, s.is_new, s.status, s.number is not null, s.payload
  from pawl.send_items(true, p_domain, coalesce(p_types, array_fill('t'::text, array[cardinality(p_tokens)])),
    array(select to_jsonb(n) from generate_series(1, cardinality(p_tokens)) n), p_ids, p_delays, p_priorities, p_attempts, null, null, null, 'ann', p_keys,
    p_tokens => p_tokens, p_worker => 'w', p_lease_ms => 30000, p_worker_types => p_worker_types, p_after => p_after) s
$$;
create function places () returns table (payload jsonb, place text, attempt smallint, token bigint, extras boolean) language sql as $$
  select c.payload, p.place, p.attempt, p.token, p.extras
  from pawl.command c
  left join (select id, 'ready' as place, attempt, null::bigint as token, extras from pawl.ready
             union all select id, 'lease', attempt, token, extras from pawl.lease
             union all select id, 'delayed', attempt, null, extras from pawl.delayed) p using (id)
  order by c.id
$$;
create function clear () returns void language sql as $$
  delete from pawl.ready; delete from pawl.lease; delete from pawl.delayed; delete from pawl.order_turn; delete from pawl.command;
$$;

-- It is leased as by a claim, in the first attempt, and is not in the queue; the audit has both events in their order.
select * from send('{7}');
select * from places();
select domain_id = pawl.domain_find('shop') as is_of_domain, priority, max_attempts, worker, lease_ms, cancel, until - started_at as left, started_at = c.created_at as is_now
from pawl.lease join pawl.command c using (id, domain_id, priority, max_attempts);
select event, attempt, actor from pawl.audit order by at, step, place;
select s.status from pawl.lease l, pawl.settle(array[l.id], array[l.token], '{complete}') s;

-- Its sender asks again with the token, because an answer was lost: it is told again. With another token it is a repeat.
select * from send('{8}', p_ids => '{018f0000-0000-7000-8000-000000000001}');
select * from send('{8}', p_ids => '{018f0000-0000-7000-8000-000000000001}');
select * from send('{9}', p_ids => '{018f0000-0000-7000-8000-000000000001}');
select * from send('{null}', p_ids => '{018f0000-0000-7000-8000-000000000001}');
-- The lease has expired, and somebody else has it: it is not told.
update pawl.lease set token = 77;
select * from send('{8}', p_ids => '{018f0000-0000-7000-8000-000000000001}');
select clear();

-- Some have a token and some have not. Large payloads and replies are noted for the settle.
select * from send('{1,null,3}');
select * from places();
-- What waits goes before what has its priority or a lower one, and not before what has a higher one.
select * from send('{4,5,6}', p_priorities => '{3,4,5}');
select clear();
-- A worker of some types does not wait for what it does not handle.
select * from send('{null,null}', p_types => '{a,b}');
select is_started from send('{1}', p_types => '{c}', p_worker_types => '{c,d}');
select is_started from send('{1}', p_types => '{c}', p_worker_types => '{c,a}');
select is_started from send('{1}', p_types => '{c}');
select clear();
-- But it does not read many of them.
select count(*) from send(array_fill(null::bigint, array[31]), p_types => array_fill('a'::text, array[31]));
select is_started from send('{1}', p_types => '{c}', p_worker_types => '{c,d}');
select count(*) from send('{null}', p_types => '{a}');
select is_started from send('{1}', p_types => '{c}', p_worker_types => '{c,d}');
select clear();
-- What is before the position of its worker's claims is not read; a position from before a restore says nothing.
select count(*) from send('{null}');
select is_started from send('{1}', p_after => array_fill((select max(pos) from pawl.ready), array[10]));
select clear();
select is_started from send('{1}', p_after => array_fill((select last_value + 1 from pawl.command_seq), array[10]));
select clear();
-- What is in another domain does not count.
select count(*) from send('{null}', p_domain => 'other');
select is_started from send('{1}');
select clear();

-- Order keys: the first one of a free key starts, and has the key. The others wait for it.
select * from send('{1,2,3,4}', p_keys => '{k,k,null,l}');
select * from places();
select order_key from pawl.order_turn order by 1;
select is_started from send('{5}', p_priorities => '{9}', p_keys => '{k}');
select clear();
-- One before it that may not start goes first, whatever its priority.
select is_started from send('{null,2}', p_keys => '{k,k}', p_priorities => '{0,9}');
select is_started from send('{3}', p_keys => '{k}', p_priorities => '{9}');
select count(*) from pawl.order_turn;
select clear();
-- The next one is queued when the first has ended.
select * from send('{1,2}', p_keys => '{k,k}');
select count(*) from pawl.claim(pawl.domain_find('shop'), 10, 60000, array_fill(0::bigint, array[10]), null, 'w');
select * from places();
select s.status from pawl.lease l, pawl.settle(array[l.id], array[l.token], '{complete}') s;
select payload, attempt from pawl.claim(pawl.domain_find('shop'), 10, 60000, array_fill(0::bigint, array[10]), null, 'w');
select clear();

-- A last attempt is left to a claim; what is delayed waits.
select is_started from send('{1,2}', p_attempts => '{1,2}', p_priorities => '{4,5}');
select is_started from send('{1,2}', p_delays => '{0,5000}');
select payload, place from places();
select clear();
-- A command with a key that retention has deleted is none, and holds no order key.
insert into pawl.kept_key (command_id, domain_id, type, payload_hash, status, ended_at)
values ('018f0000-0000-7000-8000-000000000002', pawl.domain_id('shop'), 't', pawl.payload_hash('1'), 'COMPLETED', now());
select * from send('{1}', p_ids => '{018f0000-0000-7000-8000-000000000002}', p_keys => '{k}');
select count(*) from pawl.lease;
select count(*) from pawl.order_turn;

-- Released and expired leases are as those of claims: the attempt does not count, and counts.
select is_started from send('{7}');
select verdict from pawl.lease l, pawl.release(array[l.id], array[l.token]);
select * from places();
select clear();
select is_started from send('{7}');
update pawl.lease set until = now() - interval '1 s';
select moved from pawl.requeue_due(100, 'epoch', 1000);
select place, attempt from places();
select attempt from pawl.lost_attempt;
select clear();

-- Guards.
select * from send('{1,2}', p_types => '{a}');
select * from send('{1}', p_after => '{1,2}');
select * from send('{1}', p_after => array_fill(null::bigint, array[10]));
select is_new from pawl.send_items(true, 'shop', '{a}', '{1}', null, null, null, null, null, null, null, null, p_tokens => '{1}', p_lease_ms => 30000, p_after => :after);
select is_new from pawl.send_items(true, 'shop', '{a}', '{1}', null, null, null, null, null, null, null, null, p_tokens => '{1}', p_worker => 'w', p_after => :after);
select is_new from pawl.send_items(true, 'shop', '{a}', '{1}', null, null, null, null, null, null, null, null, p_tokens => '{1}', p_worker => 'w', p_lease_ms => 99, p_after => :after);
-- Who may only send has no handlers to offer.
set session authorization pawl_sender;
select is_new from pawl.send_items(true, 'shop', '{a}', '{1}', null, null, null, null, null, null, null, null, p_tokens => '{1}', p_worker => 'w', p_lease_ms => 30000, p_after => :after);
select is_new, number from pawl.send_items(true, 'shop', '{a}', '{1}', null, null, null, null, null, null, null, null);
