-- resume_start.sql - a response, an outcome or an end starts the process that it resumes on a free handler of its caller, as a claim would, or queues it.
set client_min_messages = warning; -- a start of a type that nothing runs says so
\set after 'array_fill(0::bigint, array[10])'

create function id (p_n integer) returns uuid language sql as $$ select ('018f0000-0000-7000-8000-00000000000' || p_n)::uuid $$;
create function number (p_n integer) returns bigint language sql as $$ select c.id from pawl.command c where c.command_id = id(p_n) $$;
create function offer (p_token bigint, p_domain text default 'process:shop', p_types text[] default null, p_allowed text[] default null,
                       p_after bigint[] default array_fill(0::bigint, array[10]), p_lease_ms integer default 30000, p_worker text default 'w')
  returns jsonb language sql as $$
  select jsonb_build_object('domain', p_domain, 'token', p_token, 'worker', p_worker, 'lease_ms', p_lease_ms, 'types', p_types, 'allowed', p_allowed, 'after', p_after)
$$;
-- Started, claimed and suspended until a response "go" comes.
create function waiting (p_n integer, p_type text default 'order', p_priority integer default 4, p_attempts integer default 1000, p_domain text default 'shop')
  returns text language plpgsql as $$
declare
  v record;
begin
  perform pawl.send('process:' || p_domain, array[p_type], array[jsonb_build_object('n', p_n)], array[id(p_n)], null, array[p_priority], array[p_attempts]);
  select c.id, c.token into v from pawl.claim(pawl.domain_find('process:' || p_domain), 1, 60000, array_fill(0::bigint, array[10]), array[p_type], 'w') c
  where c.command_id = id(p_n);
  return (
    select w.verdict from pawl.process_write(array[v.id], array[v.token], null, null, null, null, null, null, null, '{WAITING_FOR_ASYNC}', '{"{\"step\": \"ask\"}"}',
      array['[{"kind": "signal", "name": "go", "count": 1}]'::jsonb], array[pawl.micros(pawl.now() + interval '1 day')], null, null, null) w);
end
$$;
create function respond (p_n integer, p_offers jsonb, p_payload jsonb default '{}') returns table (verdict text, wake text, ids uuid[]) language sql as $$
  select s.verdict, current_setting('pawl.wake', true), array(select (e ->> 'command_id')::uuid from jsonb_array_elements(s.started) e)
  from pawl.signal_one(id(p_n), 'go', p_payload, 'k', null, 'ann', p_offers => p_offers) s
$$;
create function places () returns table (n text, place text, attempt smallint, token bigint, worker text) language sql as $$
  select right(c.command_id::text, 1), p.place, p.attempt, p.token, p.worker
  from pawl.command c
  left join (select id, 'ready' as place, attempt, null::bigint as token, null as worker from pawl.ready
             union all select id, 'lease', attempt, token, worker from pawl.lease
             union all select id, 'delayed', attempt, null, null from pawl.delayed) p using (id)
  order by 1
$$;
create function clear () returns void language sql as $$
  delete from pawl.ready; delete from pawl.lease; delete from pawl.delayed; delete from pawl.process; delete from pawl.process_response; delete from pawl.process_step;
  delete from pawl.process_sent; delete from pawl.outcome; delete from pawl.command;
$$;

-- It is leased as by a claim, in its first attempt, and no worker is to be woken. What its activation continues from is returned with it.
select waiting(1);
select s.verdict, s.started -> 0 ->> 'type' as type, s.started -> 0 -> 'payload' as payload, s.started -> 0 -> 'attempt' as attempt, s.started -> 0 -> 'priority' as priority,
       s.started -> 0 -> 'loaded' -> 'state' as state, s.started -> 0 -> 'loaded' -> 'responses' -> 0 ->> 'name' as response, jsonb_array_length(s.started) as count,
       nullif(current_setting('pawl.wake', true), '') as wake
from pawl.signal_one(id(1), 'go', '{"by": "ann"}', 'k', null, 'ann', p_offers => jsonb_build_array(offer(7))) s;
select * from places();
select p.wait, p.waits, r.resumed, r.verdict, l.lease_ms, l.until - l.started_at as left, l.max_attempts
from pawl.process p join pawl.process_response r using (id) join pawl.lease l using (id);
-- The loaded columns are those of the statement of a claim.
select (select array_agg(k order by k) from jsonb_object_keys(pawl.process_loaded(number(1), 7)) k) as columns;
select pawl.process_loaded(number(1), 8);
-- Its sender asks again, because an answer was lost: it is told again. With another token it is a repeat.
select * from respond(1, jsonb_build_array(offer(7)), '{"by": "ann"}');
select * from respond(1, jsonb_build_array(offer(8)), '{"by": "ann"}');
select clear();

-- What is ready with the same or a higher priority goes first, not what has a lower one, is of another type or domain, or is before the worker's position.
select waiting(1), waiting(2, 'other'), pawl.start('order', p_process_id => id(3), p_domain => 'shop') is not null as is_started;
select * from respond(1, jsonb_build_array(offer(7)));
select * from respond(2, jsonb_build_array(offer(8, p_types => '{other,more}')));
select n, place from places();
select clear();
select waiting(1, p_priority => 5), pawl.start('order', p_process_id => id(3), p_domain => 'shop') is not null as is_started;
select * from respond(1, jsonb_build_array(offer(7)));
select clear();
select waiting(1), pawl.start('order', p_process_id => id(3), p_domain => 'shop') is not null as is_started;
select * from respond(1, jsonb_build_array(offer(7, p_after => array_fill((select max(pos) from pawl.ready), array[10]))));
select clear();
select waiting(1);
select * from respond(1, jsonb_build_array(offer(7, p_after => array_fill((select last_value + 1 from pawl.command_seq), array[10]))));
select clear();

-- The handler must be one of its domain and type, and its type must not have used up its share.
select waiting(1), waiting(2), waiting(3), waiting(4, p_domain => 'yard');
select * from respond(1, jsonb_build_array(offer(7, p_domain => 'process:yard'), offer(8, p_domain => 'process:nowhere'), offer(9, p_types => '{other}')));
delete from pawl.ready;
select * from respond(2, jsonb_build_array(offer(7, p_types => '{order,other}', p_allowed => '{other}')));
delete from pawl.ready;
select * from respond(3, jsonb_build_array(offer(7, p_types => '{other}'), offer(8, p_types => '{order,other}', p_allowed => '{order}')));
select * from respond(4, jsonb_build_array(offer(7), offer(8, p_domain => 'process:yard', p_worker => 'y')));
select * from places();
select clear();
-- A last attempt is left to a claim, and so is what has an order key or has been begun since it was delayed.
select waiting(1, p_attempts => 1), waiting(2), waiting(3);
select * from respond(1, jsonb_build_array(offer(7)));
delete from pawl.ready;
update pawl.delayed set attempt = 1 where id = number(2);
select * from respond(2, jsonb_build_array(offer(7)));
delete from pawl.ready;
update pawl.command set order_key = 'k' where command_id = id(3);
select * from respond(3, jsonb_build_array(offer(7)));
select * from places();
select clear();

-- The outcome of a command resumes the step that sent it; the end of a child its parent. An offer is used once in a transaction.
create function sending (p_n integer, p_domain text, p_type text, p_child integer) returns text language plpgsql as $$
declare
  v record;
begin
  perform pawl.send('process:shop', array['order'], '{"{}"}'::jsonb[], array[id(p_n)]);
  select c.id, c.token into v from pawl.claim(pawl.domain_find('process:shop'), 1, 60000, array_fill(0::bigint, array[10]), null, 'w') c;
  perform pawl.send(p_domain, array[p_type], '{"{}"}'::jsonb[], array[id(p_child)], null, null, null,
                    array[format('response:{"process": %s, "step": "mail"}', v.id)]);
  return (
    select w.verdict from pawl.process_write(array[v.id], array[v.token], null, null, null, null, null, null, null, '{WAITING_FOR_REPLY}', '{"{\"step\": \"mail\"}"}',
      array['[{"kind": "reply", "name": "mail", "count": 1}]'::jsonb], array[pawl.micros(pawl.now() + interval '1 day')], null, null, null) w);
end
$$;
select sending(1, 'mailer', 'welcome', 2);
select c.id, c.token from pawl.claim(pawl.domain_find('mailer'), 1, 60000, :after, null, 'w') c \gset
select s.settled, s.status, s.started -> 0 ->> 'command_id' as started from
  pawl.settle_items(true, array[:id], array[:token], '{complete}', null, null, null, null, null, jsonb_build_array(offer(7))) s;
select * from places();
-- Again, because the answer was lost; a settle that resumes nothing has started nothing.
select s.settled, s.again, s.started -> 0 ->> 'command_id' as started from
  pawl.settle_items(true, array[:id], array[:token], '{complete}', null, null, null, null, null, jsonb_build_array(offer(7))) s;
select s.again, s.started from pawl.settle_items(true, array[:id], array[:token], '{complete}', null, null, null, null, null, jsonb_build_array(offer(8))) s;
select clear();
select sending(1, 'process:shop', 'child', 2);
select c.id, c.token from pawl.claim(pawl.domain_find('process:shop'), 1, 60000, :after, null, 'w') c \gset
select w.verdict, w.started -> 0 ->> 'command_id' as started
from pawl.process_write(array[:id], array[:token], null, null, null, null, null, null, null, null, null, null, null, '{complete}', null, null, jsonb_build_array(offer(7))) w;
select w.verdict, w.started -> 0 ->> 'command_id' as started
from pawl.process_write(array[:id], array[:token], null, null, null, null, null, null, null, null, null, null, null, '{complete}', null, null, jsonb_build_array(offer(7))) w;
select * from places();
select clear();
select sending(1, 'mailer', 'welcome', 2), sending(3, 'mailer', 'welcome', 4);
select array_agg(c.id) as ids, array_agg(c.token) as tokens from pawl.claim(pawl.domain_find('mailer'), 2, 60000, :after, null, 'w') c \gset
select s.settled, jsonb_array_length(s.started) as count
from pawl.settle_items(true, :'ids', :'tokens', '{complete,complete}', null, null, null, null, null, jsonb_build_array(offer(7))) s;
select n, place, token from places();
select clear();

-- Guards. What code of applications has written into the setting of its session counts for nothing.
select waiting(1);
select * from respond(1, '{}');
select * from respond(1, '7');
select * from respond(1, '[7]');
select * from respond(1, '[{}]');
select * from respond(1, jsonb_build_array(offer(7, p_lease_ms => 99)));
select * from respond(1, jsonb_build_array(offer(7, p_after => '{1,2}')));
select * from respond(1, jsonb_build_array(offer(7) || '{"token": "x"}'));
select * from respond(1, jsonb_build_array(offer(7) || '{"types": 7}'));
select * from respond(1, jsonb_build_array(offer(7, p_after => array_fill(null::bigint, array[10]))));
select * from respond(1, (select jsonb_agg(offer(n)) from generate_series(1, 101) n));
set session authorization pawl_sender;
select verdict from pawl.signal_one('018f0000-0000-7000-8000-000000000001', 'go', '{}', 'k', null, 'ann',
  p_offers => '[{"domain": "process:shop", "token": 7, "worker": "w", "lease_ms": 1000, "after": [0,0,0,0,0,0,0,0,0,0]}]');
set pawl.offers = '[{"domain": "process:shop", "token": 7, "worker": "w", "lease_ms": 1000, "after": [0,0,0,0,0,0,0,0,0,0]}]';
select pawl.signal('018f0000-0000-7000-8000-000000000001', 'go', '{}', 'k', p_actor => null);
reset session authorization;
select n, place from places();
select clear(), waiting(2);
set pawl.offers = 'no json';
select pawl.signal(id(2), 'go');
select n, place from places();
reset pawl.offers;
