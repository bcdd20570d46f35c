-- command_operate.sql - one id in several domains, and decisions that are made twice.

create function claim_all (p_domain text) returns table (id bigint, token bigint) language sql as $$
  select c.id, c.token
  from pawl.claim(pawl.domain_find(p_domain), 100, 60000, array_fill(0::bigint, array[10]), null, 'w') c
$$;
create function fail_all (p_domain text) returns bigint language sql as $$
  select count(s.*) from claim_all(p_domain) c, pawl.settle(array[c.id], array[c.token], '{fail}', p_errors => '{broken}') s
$$;
\set one '00000000-0000-4000-8000-000000000001'
\set two '00000000-0000-4000-8000-000000000002'

-- The same id in two domains: each can be named, and without a domain nothing is guessed.
select pawl.send('shop', 'a', '1'::jsonb, :'one'), pawl.send('till', 'a', '2'::jsonb, :'one'), pawl.send('till', 'a', '3'::jsonb, :'two');
select pawl.command_show(:'one');
\echo :LAST_ERROR_SQLSTATE
select pawl.command_show(:'one', 'shop') ->> 'payload' as shop, pawl.command_show(:'one', 'till') ->> 'payload' as till,
       pawl.command_show(:'one', 'nowhere') as nowhere, pawl.command_show(:'two') ->> 'payload' as two;
select ord, verdict, is_new, domains from pawl.command_cancel(array[:'one', :'two']::uuid[], null, 'ann', 'no');
select ord, verdict, is_new, domains from pawl.command_cancel(array[:'one', :'one']::uuid[], '{shop,nowhere}', 'ann', 'no');
select pawl.command_show(:'one', 'shop') ->> 'status' as shop, pawl.command_show(:'one', 'till') ->> 'status' as till;
select fail_all('till');
select ord, verdict, domains from pawl.command_decide(array[:'one']::uuid[], null, 'complete', 'ann', null, '7');
select ord, verdict, domains from pawl.command_decide(array[:'one']::uuid[], '{shop}', 'complete', 'ann', null, '7');
select ord, verdict, domains from pawl.command_decide(array[:'one']::uuid[], '{till}', 'complete', 'ann', null, '7');

-- The same decision again changes nothing and says who decided when; another one is refused and says so too.
select * from pawl.command_decide(array[:'one']::uuid[], '{till}', 'complete', 'ann', null, '7') \gset was_
select :'was_verdict', :'was_is_new', :'was_decision', :'was_operator',
       :was_decided_at = (select pawl.micros(a.at) from pawl.audit a where a.event = 'OPERATOR_COMPLETE') as at;
select ord, verdict, is_new, decision, operator from pawl.command_decide(array[:'one']::uuid[], '{till}', 'complete', 'ann', null, '8');
select ord, verdict, is_new, decision, operator from pawl.command_decide(array[:'one']::uuid[], '{till}', 'complete', 'bob', null, '7');
select ord, verdict, is_new, decision, operator from pawl.command_decide(array[:'one']::uuid[], '{till}', 'complete', 'ann', 'why', '7');
select ord, verdict, is_new, decision, operator from pawl.command_decide(array[:'one']::uuid[], '{till}', 'retry', 'ann', null, null);
select ord, verdict, is_new, decision, operator from pawl.command_cancel(array[:'one']::uuid[], '{till}', 'ann', null);
select count(*) as decisions from pawl.audit where event like 'OPERATOR%';

-- Retry: once, until it is given up again.
select pawl.send('desk', 'a', '1'::jsonb, :'one');
select ord, verdict, is_new, decision from pawl.command_decide(array[:'one']::uuid[], '{desk}', 'retry', 'ann', null, null);
select fail_all('desk');
select ord, verdict, is_new, decision, operator from pawl.command_decide(array[:'one']::uuid[], '{desk}', 'retry', 'ann', null, null);
select ord, verdict, is_new, decision, operator from pawl.command_decide(array[:'one']::uuid[], '{desk}', 'retry', 'ann', null, null);
select ord, verdict, is_new, decision, operator from pawl.command_decide(array[:'one']::uuid[], '{desk}', 'retry', 'bob', null, null);
select fail_all('desk');
select ord, verdict, is_new, decision, operator from pawl.command_decide(array[:'one']::uuid[], '{desk}', 'retry', 'ann', null, null);
select count(*) from pawl.ready where domain_id = pawl.domain_find('desk');

-- Cancel while it runs, then again, by another operator, and after its worker obeyed.
select id, token from claim_all('desk') \gset
select ord, verdict, is_new, decision, operator from pawl.command_cancel(array[:'one']::uuid[], '{desk}', 'ann', 'late');
select ord, verdict, is_new, decision, operator from pawl.command_cancel(array[:'one']::uuid[], '{desk}', 'ann', 'late');
select ord, verdict, is_new, decision, operator from pawl.command_cancel(array[:'one']::uuid[], '{desk}', 'bob', 'late');
select verdict from pawl.extend(array[:id], array[:token], 1000);
select ord, verdict, is_new, decision, operator from pawl.command_cancel(array[:'one']::uuid[], '{desk}', 'ann', 'late');
select event, actor from pawl.audit where id = :id and event like '%CANCEL%' order by at;

-- A cancel that came too late, and one that was in time but not obeyed.
select pawl.send('pier', 'a', '1'::jsonb, :'one'), pawl.send('pier', 'a', '1'::jsonb, :'two');
select count(s.*) from (select * from claim_all('pier') order by id limit 1) c, pawl.settle(array[c.id], array[c.token], '{complete}') s;
select ord, verdict, is_new, decision, operator from pawl.command_cancel(array[:'one', :'two']::uuid[], '{pier,pier}', 'ann', null);
select count(s.*) from pawl.lease l, pawl.settle(array[l.id], array[l.token], '{complete}') s;
select ord, verdict, is_new, decision, operator from pawl.command_cancel(array[:'one', :'two']::uuid[], '{pier,pier}', 'ann', null);

-- Without a name, the session's user decides. A result belongs to complete.
select pawl.send('dock', 'a', '1'::jsonb, :'one'), fail_all('dock');
select verdict, operator = session_user as own from pawl.command_decide(array[:'one']::uuid[], '{dock}', 'cancel', null, null, null);
select * from pawl.command_decide(array[:'one']::uuid[], '{dock}', 'retry', 'ann', null, '7');
select * from pawl.command_decide(array[:'one']::uuid[], '{dock}', null, 'ann', null, null);
select * from pawl.command_decide(array[:'one']::uuid[], '{dock,dock}', 'retry', 'ann', null, null);
-- By ids alone.
select * from pawl.cancel(array[:'one', :'two']::uuid[], null, 'ann');
select * from pawl.tsq_decide(array[:'one', :'two']::uuid[], 'retry', 'ann', null, null);
