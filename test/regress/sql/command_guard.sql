-- command_guard.sql - what callers must not be able to do, or get a plain sentence for.
\set VERBOSITY terse

create function claim_all (p_domain text) returns table (id bigint, token bigint) language sql as $$
  select c.id, c.token
  from pawl.claim(pawl.domain_find(p_domain), 100, 60000, array_fill(0::bigint, array[10]), null, 'w') c
$$;

-- Knowing one lease token tells nothing about the next: a neighbour's lease cannot be settled by counting.
select count(pawl.send('till', 'a', to_jsonb(n))) from generate_series(1, 20) n;
create table claimed as
select c.n, c.id, c.token
from generate_series(1, 20) n,
lateral (select n, c.id, c.token
         from pawl.claim(pawl.domain_find('till'), 1, 60000, array_fill(0::bigint, array[10]), null, 'w' || n) c) c;
select count(*) as claimed, count(distinct token) as tokens,
       count(distinct token - before) > 15 as scattered,
       max(token) < 9007199254740992 as fits_a_double
from (select token, lag(token) over (order by n) as before from claimed) c;
select count(*) as settled_by_counting
from (select id, lag(token) over (order by n) as token from claimed) c, generate_series(1, 100) step,
     pawl.settle(array[c.id], array[c.token + step], '{complete}') s
where s.settled;
select count(*) filter (where s.settled) as settled_by_their_workers from claimed c, pawl.settle(array[c.id], array[c.token], '{complete}') s;

-- Types of dead letters that pawl itself tries again are not for applications: no role but the monitor can make one, or keep the
-- true one out by a twin.
set session authorization pawl_sender;
select * from pawl.dead_letter_put(array['reply'], array['till/1'], array['{"queue": "q", "message": 1}']::jsonb[], array['e'], array['c'], 0);
select * from pawl.dead_letter_put(array['x', 'on_complete'], array['a', 'b'], array['{}', '{}']::jsonb[], array['e', 'e'], array['c', 'c'], 0);
select * from pawl.dead_letter_put(array['alert_webhook'], array['a'], array['{}']::jsonb[], array['e'], array['c'], 0);
select * from pawl.dead_letter_keep(array['reply'], array['till/1'], array['{}']::jsonb[], array['e'], array['c'], 0);
select item, is_new from pawl.dead_letter_put(array['charge'], array['a'], array['{}']::jsonb[], array['e'], array['c'], 3600000);
reset session authorization;
select pawl.dead_letter_route('reply', 'shop', 'x');
select operation_type, operation_key from pawl.failed_operations;
-- And what is wrong is named.
select * from pawl.dead_letter_put(array['a', null], array['a', 'b'], array['{}', '{}']::jsonb[], array['e', 'e'], array['c', 'c'], 0);
select * from pawl.dead_letter_put(array['a'], array[null], array['{}']::jsonb[], array['e'], array['c'], 0);
select * from pawl.dead_letter_put(array['a'], array['k'], array[null]::jsonb[], array['e'], array['c'], 0);
select * from pawl.dead_letter_put(array['a'], array['k'], array['{}']::jsonb[], array[null], array['c'], 0);
select * from pawl.dead_letter_put(array['a'], array['k'], array['{}']::jsonb[], array['e'], array[repeat('c', 51)], 0);
select * from pawl.dead_letter_put('[0:0]={a}', array['k'], array['{}']::jsonb[], array['e'], array['c'], 0);
select * from pawl.dead_letter_put(array['a'], array['k'], array['{}']::jsonb[], array['e'], array['c'], null);

-- A sender that cancels under another name is recorded with its own; an administrator (a pod) may say for whom it acts.
select count(pawl.send('gate', 'x', '{}', p_command_id => ('00000000-0000-4000-8000-00000000000' || n)::uuid)) from generate_series(1, 4) n;
set session authorization pawl_sender;
select verdict from pawl.cancel('{00000000-0000-4000-8000-000000000001}', 'why', p_operator => 'ann');
select verdict, is_new, operator from pawl.command_cancel('{00000000-0000-4000-8000-000000000001}', null, 'ann', 'why');
select verdict, operator from pawl.command_cancel('{00000000-0000-4000-8000-000000000002}');
select verdict, operator from pawl.command_cancel('{00000000-0000-4000-8000-000000000003}', null, null);
reset session authorization;
set session authorization pawl_admin;
select verdict, operator from pawl.command_cancel('{00000000-0000-4000-8000-000000000004}', null, 'shop (ann)');
select pawl.command_cancel('{00000000-0000-4000-8000-000000000004}', null, repeat('x', 401));
select pawl.command_cancel('{00000000-0000-4000-8000-000000000004}', null, 'ann', repeat('x', 2001));
select pawl.command_cancel('{00000000-0000-4000-8000-000000000004,null}');
select pawl.command_decide('{00000000-0000-4000-8000-000000000004}', null, null);
reset session authorization;
select a.event, a.actor from pawl.audit a join pawl.command c using (id) where c.domain_id = pawl.domain_find('gate') and event = 'CANCELED' order by a.id;

-- A null among ids or tokens is refused as a whole.
select * from pawl.settle('{1,null}', '{1,1}', '{complete,complete}');
select * from pawl.settle('{1}', '{null}', '{complete}');
select * from pawl.extend('{null}', '{1}', 1000);
select * from pawl.extend('{1}', '{null}', 1000);
select * from pawl.release('{null}', '{1}');

-- Arguments of a send, each with a sentence of its own.
select pawl.send('shop', 'x', '{}'::jsonb, p_correlation_id => repeat('c', 201));
select pawl.send('shop', 'x', '{}'::jsonb, p_reply_to => '');
select pawl.send('shop', 'x', '{}'::jsonb, p_reply_to => 'a;b');
select pawl.send('shop', 'x', '{}'::jsonb, p_reply_to => 'a--b');
select pawl.send('shop', 'x', '{}'::jsonb, p_reply_to => repeat('q', 48));
select pawl.send('shop', 'x', '{}'::jsonb, p_priority => 99999);
select pawl.send('shop', 'x', '{}'::jsonb, p_max_attempts => 99999);
-- Arrays of integers, as for one command.
select * from pawl.send('shop', array['x'], array['{}']::jsonb[], p_priorities => array[99999]);
select * from pawl.send('shop', array['x'], array['{}']::jsonb[], p_max_attempts => array[99999]);
select is_new, refusal from pawl.send('guarded', array['x'], array['{}']::jsonb[], p_priorities => array[9], p_max_attempts => array[2]);
select priority, max_attempts from pawl.command where domain_id = pawl.domain_find('guarded');
select pawl.send('shop', 'x', '{}'::jsonb, p_delay => '-1 s');
select pawl.send('shop', 'x', '{}'::jsonb, p_delay => '20 years');
select * from pawl.send('shop', array['x'], array['{}']::jsonb[], p_actor => repeat('a', 401));
select pawl.wake(repeat('d', 9000));
select pawl.wake('no spaces');
select pawl.wake(null);
select pawl.wake('shop');
select count(*) from pawl.command where domain_id = pawl.domain_find('shop');
