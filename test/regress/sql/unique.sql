-- unique.sql - while a unique key is taken, a further send with it is a duplicate of the command that has it; the key is free exactly when its scope has ended.
\i ../fake_clock.sql
insert into pawl.fake_clock (at) values ('2026-01-05 12:00 UTC');

create function id (n integer) returns uuid language sql immutable as $$ select ('00000000-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid $$;
create function n (id uuid) returns integer language sql immutable as $$ select right(id::text, 12)::integer $$;
-- One item; the payload is the number of its id.
create function send (
  n integer, p_for text default null, p_action text default null, p_delay_s integer default null, p_payload jsonb default null, p_key text default 'k',
  p_order text default null, p_type text default 't', p_domain text default 'shop')
  returns table (id integer, is_new boolean, status text, duplicate text, refusal text)
  language sql
as $$
  select n(s.command_id), s.is_new, s.status, s.duplicate, s.refusal
  from pawl.send(p_domain, array[p_type], array[coalesce(p_payload, to_jsonb(n))], array[id(n)], array[p_delay_s * 1000], p_order_keys => array[p_order],
    p_actor => 'ann', p_unique_keys => array[p_key], p_unique_for => array[p_for], p_on_duplicates => array[p_action]) s
$$;
create function claim () returns table (id integer, attempt smallint, payload text) language sql as $$
  select n(c.command_id), c.attempt, left(c.payload::text, 20)
  from pawl.claim(pawl.domain_find('shop'), 10, 60000, array_fill(0::bigint, array[10]), null, 'w') c
$$;
create function settle (p_outcome text, p_delay_s integer default null) returns table (status text) language sql as $$
  select s.status
  from (select array_agg(l.id order by l.id) as ids, array_agg(l.token order by l.id) as tokens, count(*)::integer as n from pawl.lease l) l
  cross join lateral pawl.settle(l.ids, l.tokens, array_fill(p_outcome, array[l.n]), null, null, array_fill(p_delay_s * 1000::bigint, array[l.n])) s
  where l.n > 0
$$;
create function later (p_s integer) returns void language sql as $$ update pawl.fake_clock set at = at + p_s * interval '1 s' $$;
create function due () returns integer language sql as $$ select moved from pawl.requeue_due(100, 'epoch', 1000) $$;
create function places () returns table (id integer, place text, attempt smallint, due_in interval, payload text, extras boolean) language sql as $$
  select n(c.command_id), p.place, p.attempt, coalesce(p.due, c.due_at) - pawl.now(), left(c.payload::text, 20), p.extras
  from pawl.command c
  left join (select id, 'ready' as place, attempt, null::timestamptz as due, extras from pawl.ready
             union all select id, 'lease', attempt, null, extras from pawl.lease
             union all select id, 'delayed', attempt, due, extras from pawl.delayed
             union all select id, 'parked', 0, null, true from pawl.parked
             union all select id, 'tsq', attempt, null, null from pawl.tsq
             union all select id, 'ended', attempts, null, null from pawl.outcome) p using (id)
  order by c.id
$$;
create function clear () returns void language sql as $$
  delete from pawl.ready; delete from pawl.lease; delete from pawl.delayed; delete from pawl.parked; delete from pawl.order_turn; delete from pawl.tsq;
  delete from pawl.outcome; delete from pawl.command; delete from pawl.unique_key; delete from pawl.kept_key; delete from pawl.event;
  delete from pawl.replaced_payload;
$$;

-- queued: until it begins.
select * from send(1, 'queued');
select * from send(2, 'queued');
select * from send(3, 'active'); -- the scope is that of the command that has the key
select * from claim();
select * from send(4, 'queued');
select * from places();
-- A retry, a release and the end of a lease do not take the key back: it has begun.
select * from settle('retry', 0);
select * from send(5, 'queued');
select * from claim();
select verdict from pawl.lease l, pawl.release(array[l.id], array[l.token]) where l.id = (select max(id) from pawl.lease);
select * from send(6, 'queued');
select * from places();
select clear();
-- Nor does an operator who queues it again.
select * from send(7, 'queued');
select * from claim();
select * from settle('fail');
select verdict from pawl.tsq_decide(array[id(7)], 'retry');
select * from send(8, 'queued');
-- It ends before it begins: canceled.
select verdict from pawl.cancel(array[id(8)]);
select * from send(9, 'queued');
select clear();

-- active: until it has ended. Retries and lost workers are part of it.
select * from send(11);
select * from claim();
select * from send(12);
select * from settle('retry', 5);
select * from send(13);
select later(5), due();
select * from claim();
select later(61), due();
select * from send(14);
select * from claim();
select * from settle('complete');
select * from send(15);
select * from claim();
select * from settle('reject');
select * from send(16);
-- Canceled while it runs: until its worker has been told.
select * from claim();
select verdict from pawl.cancel(array[id(16)]);
select * from send(17);
select verdict from pawl.lease l, pawl.extend(array[l.id], array[l.token], 60000);
select * from send(18);
-- In troubleshooting it is free; a retry takes the key back if no other has it.
select * from claim();
select * from settle('fail');
select verdict from pawl.tsq_decide(array[id(18)], 'retry');
select * from send(19);
select * from claim();
select * from settle('fail');
select * from send(20);
select verdict from pawl.tsq_decide(array[id(18)], 'retry');
select * from send(21);
select * from places();
select clear();

-- A time: from the send on, wherever it is, and to the instant.
select * from send(31, '90s');
select * from claim();
select * from settle('complete');
select later(89);
select * from send(32);
select later(1);
select * from send(33);
select clear();

-- The key is one of its domain and type.
select * from send(41);
select * from send(41, p_domain => 'other');
select * from send(42, p_type => 'u');
select * from send(43, p_key => 'k2');
select * from send(44);
select clear();

-- replace: another payload, before it begins. The position stays, and the time.
select * from send(51, p_delay_s => 60);
select * from send(52, p_action => 'replace', p_delay_s => 5);
select * from places();
select later(60), due();
select * from send(53, p_action => 'replace', p_payload => to_jsonb(repeat('x', 2000)));
select * from places();
select c.payload_bytes from pawl.command c;
-- What was sent first, sent again, is a repeat; so is each of the duplicates, also when it would be new by now.
select * from send(51);
select * from send(51, p_payload => '"y"');
select * from claim();
select * from send(54, p_action => 'replace');
select * from settle('complete');
select * from send(52, p_action => 'replace');
select * from send(53, p_action => 'replace');
select * from send(53, p_action => 'replace', p_payload => to_jsonb(repeat('x', 2000)));
select * from send(52, p_action => 'replace', p_type => 'u');
-- Without the key it is another command.
select is_new, refusal from pawl.send('shop', array['t'], array['52'::jsonb], array[id(52)]);
select event, actor, n((details ->> 'duplicate')::uuid) from pawl.event order by at, ctid;
select clear();
-- In the queue it keeps its place before others.
select * from send(61, p_key => 'a');
select * from send(62, p_key => 'b');
select * from send(63, p_key => 'a', p_action => 'replace', p_payload => to_jsonb(repeat('x', 2000)));
select * from claim();
select clear();

-- move: the time and nothing else, earlier and later, into the queue and out of it.
select * from send(71, p_delay_s => 10);
select later(9);
select * from send(72, p_action => 'move', p_delay_s => 10);
select later(9), due();
select * from places();
select * from send(73, p_action => 'move', p_delay_s => 2);
select * from places();
select * from send(74, p_action => 'move');
select * from places();
select * from send(75, p_action => 'move', p_delay_s => 30);
select * from places();
select later(30), due();
select * from claim();
select * from send(76, p_action => 'move', p_delay_s => 30);
select clear();
-- Of a command that has not got its order key: when it gets it.
select * from send(81, p_key => null, p_order => 'o');
select * from send(82, p_order => 'o');
select * from send(83, p_action => 'move', p_delay_s => 60);
select * from places();
select * from claim();
select * from places();
select * from send(84, p_action => 'move', p_delay_s => 20);
select * from send(85, p_action => 'replace');
select * from settle('complete');
select * from places();
select clear();

-- Several in one call: the first takes the key, the last payload and the last time count. Items without a key are among them.
select s.ord, n(s.command_id), s.is_new, s.status, s.duplicate
from pawl.send('shop', array_fill('t'::text, array[7]), array['1', '2', '3', '4', '5', '6', '7']::jsonb[],
  array[id(91), id(92), id(93), id(94), id(95), id(96), id(91)], array[null, null, null, 9000, null, 7000, null],
  p_unique_keys => array['a', null, 'a', 'a', 'b', 'a', 'a'], p_on_duplicates => array[null, null, 'replace', 'move', null, 'move', null]) s;
select * from places();
-- The same call again.
select s.ord, n(s.command_id), s.is_new, s.status, s.duplicate
from pawl.send('shop', array_fill('t'::text, array[6]), array['1', '2', '3', '4', '5', '6']::jsonb[],
  array[id(91), id(92), id(93), id(94), id(95), id(96)], array[null, null, null, 9000, null, 7000],
  p_unique_keys => array['a', null, 'a', 'a', 'b', 'a'], p_on_duplicates => array[null, null, 'replace', 'move', null, 'move']) s;
select clear();

-- Ids that pawl makes. One function for one command, from texts too.
select pawl.send('shop', 't', '1'::jsonb, p_unique_key => 'k') = pawl.send('shop', 't', '2'::jsonb, p_unique_key => 'k') as is_same;
select pawl.send('shop', 't', '3', p_unique_key => 'k', p_unique_for => 'queued', p_on_duplicate => 'replace')
     = (select command_id from pawl.command) as is_same;
select count(*), min(payload::text) from pawl.command;
select count(*) from pawl.kept_key;
-- A text key of the send, and a unique key.
select s.command_id = pawl.key('order-1') as is_key, s.is_new, s.duplicate
from pawl.send('shop', array['t'], array['{}'::jsonb], p_keys => array['order-1'], p_unique_keys => array['other']) s;
select s.command_id = pawl.key('order-1') as is_first, s.is_new, s.duplicate
from pawl.send('shop', array['t'], array['{}'::jsonb], p_keys => array['order-2'], p_unique_keys => array['other']) s, generate_series(1, 2);
select s.is_new, s.refusal from pawl.send('other', array['t'], array['{}'::jsonb], p_keys => array['order-2'], p_unique_keys => array['other']) s;
select clear();

-- Retention: the key of a deleted command is free, but for a time that is not over. Ids of duplicates are kept as long as those of commands.
select * from send(101, '3d', p_key => 'time');
select * from send(102, p_key => 'active');
select * from send(103, p_key => 'active', p_action => 'replace');
select * from claim();
select * from settle('complete');
select later(2 * 86400);
select pawl.prune(100, '1 day', '1 day');
select (select count(*) from pawl.command) as commands, (select array_agg(key) from pawl.unique_key) as keys, (select count(*) from pawl.replaced_payload) as replaced;
select * from send(104, p_key => 'time');
select * from send(102, p_key => 'active');
select * from send(103, p_key => 'active', p_action => 'replace');
select * from send(105, p_key => 'active');
select * from claim();
select * from settle('complete');
select later(86400);
select pawl.prune_keys(100, '3 days');
select (select array_agg(key) from pawl.unique_key) as keys, (select count(*) from pawl.kept_key) as ids;
select * from send(106, p_key => 'time');
select clear();

-- Refused, and nothing is written.
select * from send(201, '0.5s');
select * from send(201, 'always');
select * from send(201, '1 year 1 day');
select * from send(201, '');
select * from send(201, p_action => 'drop');
select * from send(201, p_key => '');
select * from send(201, p_key => repeat('k', 201));
select * from send(201, p_key => null, p_for => 'queued');
select * from send(201, p_domain => 'process:shop');
select pawl.send('shop', 't', '1'::jsonb, p_unique_for => 'queued');
select from pawl.send('shop', array['t'], array['1'::jsonb], p_unique_keys => array['a', 'b']);
select (select count(*) from pawl.command), (select count(*) from pawl.unique_key), (select count(*) from pawl.send_lock);
