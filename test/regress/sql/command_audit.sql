-- command_audit.sql - every event of a command is shown once, in order, whichever way it went; also after its payload was deleted.
\i ../fake_clock.sql
insert into pawl.fake_clock (at) values ('2026-01-05 12:00 UTC');
create function tick (p_by interval default '1 s') returns void language sql as $$ update pawl.fake_clock set at = at + p_by $$;
create function claim (p_worker text) returns table (id bigint, token bigint) language sql as $$
  select c.id, c.token from pawl.claim(pawl.domain_find('shop'), 1, 60000, array_fill(0::bigint, array[10]), null, p_worker) c
$$;
-- Claim one command and settle it a second later.
create function handle (p_worker text, p_outcome text, p_error text default null) returns text language plpgsql as $$
declare
  v_id bigint;
  v_token bigint;
begin
  select c.id, c.token into strict v_id, v_token from claim(p_worker) c;
  perform tick();
  return (select s.status from pawl.settle(array[v_id], array[v_token], array[p_outcome], array['{"ok": true}'::jsonb], array[p_error], '{0}') s);
end
$$;
create function audit_of (p_n integer) returns table (at text, event text, attempt text, actor text, details text) language sql as $$
  select a ->> 'at', a ->> 'event', a ->> 'attempt', a ->> 'actor', a ->> 'details'
  from json_array_elements(pawl.command_show(('00000000-0000-4000-8000-00000000000' || p_n)::uuid) -> 'audit') with ordinality u (a, n)
  order by u.n
$$;
create function send_one (p_n integer, p_actor text default null, p_max smallint default 3) returns void language sql as $$
  select from pawl.send('shop', array['a'], array['1'::jsonb], array[('00000000-0000-4000-8000-00000000000' || p_n)::uuid],
    p_max_attempts => array[p_max], p_actor => p_actor)
$$;

-- Straight: sent, received, completed; while it is queued and while it runs.
select send_one(1, 'web');
select * from audit_of(1);
select tick();
select handle('w1', 'complete');
select * from audit_of(1);
select pawl.command_show('00000000-0000-4000-8000-000000000001');

-- Failed twice in the same instant, then refused.
select send_one(2);
select handle('w1', 'retry', 'busy');
select handle('w2', 'retry', 'still busy');
select handle('w3', 'reject', 'no');
select * from audit_of(2);

-- Troubleshooting: an operator lets it run again, it fails, and the operator completes it.
select send_one(3);
select handle('w1', 'fail', 'broken');
select verdict from pawl.tsq_decide(array['00000000-0000-4000-8000-000000000003']::uuid[], 'retry', 'ann', 'try again');
select handle('w2', 'fail', 'broken again');
select tick();
select verdict from pawl.tsq_decide(array['00000000-0000-4000-8000-000000000003']::uuid[], 'complete', 'bob', 'by hand', '7');
select * from audit_of(3);

-- A worker that is lost, twice; then no attempt is left, and the operator cancels.
select send_one(4, 'web', 2::smallint);
select count(*) from claim('w1');
select * from audit_of(4);
select tick('2 min');
select moved from pawl.requeue_due(10, 'epoch', 1000);
select count(*) from claim('w2');
select tick('2 min');
select moved from pawl.requeue_due(10, 'epoch', 1000);
select verdict from pawl.tsq_decide(array['00000000-0000-4000-8000-000000000004']::uuid[], 'cancel', 'ann');
select * from audit_of(4);

-- A claim that is undone, then a cancellation while it runs, noticed by a heartbeat.
select send_one(5);
select pawl.release(array[c.id], array[c.token]) as released from claim('w1') c;
select c.id as id, c.token as token from claim('w2') c \gset
select verdict from pawl.cancel(array['00000000-0000-4000-8000-000000000005']::uuid[], 'wrong one', 'ann');
select * from audit_of(5);
select verdict from pawl.extend(array[:id]::bigint[], array[:token]::bigint[], 1000);
select * from audit_of(5);

-- Canceled while it runs, and completed all the same; canceled while it runs, and failed; canceled while it is queued.
select send_one(6), send_one(7);
select c.id as id, c.token as token from claim('w1') c \gset
select verdict from pawl.cancel(array['00000000-0000-4000-8000-000000000006']::uuid[], null, 'ann');
select status from pawl.settle(array[:id]::bigint[], array[:token]::bigint[], '{complete}');
select * from audit_of(6);
select c.id as id, c.token as token from claim('w1') c \gset
select verdict from pawl.cancel(array['00000000-0000-4000-8000-000000000007']::uuid[], null, 'ann');
select status from pawl.settle(array[:id]::bigint[], array[:token]::bigint[], '{retry}', p_errors => '{busy}');
select * from audit_of(7);
select send_one(8, 'web');
select verdict from pawl.cancel(array['00000000-0000-4000-8000-000000000008']::uuid[], 'not needed', 'ann');
select * from audit_of(8);

-- Retention deletes the commands and keeps the audit, then shows none of it.
create table was as select a.id, a.at, a.domain_id, a.attempt, a.event, a.command_id, a.actor, a.details from pawl.audit a;
select count(*) from was;
select tick('31 days');
select pawl.prune(100, '30 days', '90 days');
select count(*) from pawl.command;
select (select count(*) from pawl.audit) as events,
       (select count(*) from (select id, at, domain_id, attempt, event, command_id, actor, details from pawl.audit except select * from was) d) as other;
select tick('59 days 1 min');
select pawl.prune(100, '30 days', '90 days') > 0 as more;
select count(*) as events from pawl.audit;

-- Sent and committed while a claim is under way, after it has begun and before it reads the queue: still received after it was sent.
create sequence ticks;
create table armed (command integer);
create or replace function pawl.now () returns timestamptz language plpgsql as $$
declare
  v_at timestamptz := timestamptz '2027-01-01 00:00 UTC' + nextval('public.ticks') * interval '1 s';
  v_n integer;
begin
  delete from public.armed returning command into v_n;
  if v_n is not null then
    perform public.send_one(v_n);
  end if;
  return v_at;
end
$$;
select send_one(9);
insert into armed values (0);
create temp table taken as select * from pawl.claim(pawl.domain_find('shop'), 10, 60000, array_fill(0::bigint, array[10]), null, 'w1');
select (select count(*) from armed) as armed, count(*) as sent from pawl.command;
select count(*) as received, count(*) filter (where r.at < s.at) as before_sent
from pawl.audit r join pawl.audit s on s.id = r.id and s.event = 'SENT' where r.event = 'RECEIVED';
