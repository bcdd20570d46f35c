-- bulk.sql - one decision about all that match a filter: in chunks, resumed where the last one ended, with what is locked set aside; once per operation id.
\set VERBOSITY terse
select count(*) from pawl.send('shop', array_fill('sale'::text, '{600}'), array_fill('1'::jsonb, '{600}'));
select count(*) from pawl.send('shop', array_fill('late'::text, '{100}'), array_fill('1'::jsonb, '{100}'), p_delays_ms => array_fill(3600000::bigint, '{100}'));
select count(*) from pawl.send('post', array_fill('mail'::text, '{50}'), array_fill('1'::jsonb, '{50}'), p_correlation_ids => array_fill('c1'::text, '{50}'));
select count(*) from pawl.claim(pawl.domain_find('shop'), 5, 60000, array_fill(0::bigint, '{10}'), null, 'w');
-- Runs an operation to its end; how many chunks it took, and the most that one of them read.
create function pg_temp.run (p_id uuid, out chunks bigint, out most integer, out state text, out matched bigint, out decided bigint, out known bigint, out refused bigint, out locked bigint)
language plpgsql as $$
begin
  for i in 1..1000 loop
    perform from pawl.bulk_step(p_id) s where s.ended;
    exit when found;
  end loop;
  select count(*), max(c.matched) into chunks, most from pawl.bulk_chunk c join pawl.bulk_operation b on b.id = c.operation where b.operation_id = p_id;
  select s.state, s.matched, s.decided, s.known, s.refused, s.locked into state, matched, decided, known, refused, locked from pawl.bulk_show(p_id) s;
end
$$;
\set one '''00000000-0000-4000-8000-000000000001'''
\set two '''00000000-0000-4000-8000-000000000002'''
\set three '''00000000-0000-4000-8000-000000000003'''
\set four '''00000000-0000-4000-8000-000000000004'''
\set five '''00000000-0000-4000-8000-000000000005'''

-- Counts, bounded.
select * from pawl.bulk_count('command', 'cancel', '{"domain": "shop"}');
select * from pawl.bulk_count('command', 'cancel', '{"domain": "shop", "type": "late"}');
select count >= 1000 as many, is_exact from pawl.bulk_count('command', 'cancel', '{}', 500);
select * from pawl.bulk_count('command', 'cancel', '{"correlation_id": "c1"}');
select * from pawl.bulk_count('command', 'cancel', '{"domain": "unknown"}');
select * from pawl.bulk_count('command', 'delete', '{}');
select * from pawl.bulk_count('command', 'cancel', '{"since": "2020-01-01T00:00:00Z", "until": "2020-01-02T00:00:00Z"}');

-- The same again is the same; another one under its id is not.
select b.is_new, b.differs from pawl.bulk_start(:one, 'command', 'cancel', '{"domain": "shop"}', null, 'ann', 'too many') b;
select b.is_new, b.differs from pawl.bulk_start(:one, 'command', 'cancel', '{"domain": "shop"}', null, 'ann', 'too many') b;
select b.is_new, b.differs from pawl.bulk_start(:one, 'command', 'cancel', '{"domain": "post"}', null, 'ann', 'too many') b;
-- What is sent later is not concerned.
select count(*) from pawl.send('shop', array['sale'], array['1']::jsonb[]);
-- Chunks are small at first, and each is a transaction of its own: what had been done when one failed stays.
select s.ended from pawl.bulk_step(:one) s;
begin;
select s.ended from pawl.bulk_step(:one) s;
rollback;
select s.state, s.matched, s.decided from pawl.bulk_show(:one) s;
select r.chunks > 2 as several, r.most <= 500 as bounded, r.state, r.matched, r.decided, r.known, r.refused, r.locked from pg_temp.run(:one) r;
select status, count(*) from pawl.command_list('shop', p_limit => null) group by 1 order by 1;
-- Who: in the audit of each, and of the operation.
select distinct a.event, a.actor, a.details ->> 'reason' as reason from pawl.audit a where a.event in ('CANCELED', 'OPERATOR_CANCEL') order by 1;
select c.subject, c.name, c.action, c.operator, c.reason, c.details from pawl.control_event c;
select count(*) from pawl.bulk_step(:one);

-- Those that run are asked to end; again they are known.
select r.state, r.matched, r.decided, r.known from pawl.bulk_start(:two, 'command', 'cancel', '{"domain": "shop", "status": "IN_PROGRESS"}', null, 'ann', 'too many') b, pg_temp.run(:two) r;

-- The troubleshooting queue.
with gone as (delete from pawl.ready r where r.domain_id = pawl.domain_find('post') returning r.id, r.domain_id)
insert into pawl.tsq (id, since, domain_id, attempt) select g.id, pawl.now(), g.domain_id, 1 from gone g;
select r.state, r.matched, r.decided from pawl.bulk_start(:three, 'command', 'retry', '{"domain": "post"}', null, 'ann') b, pg_temp.run(:three) r;
select status, count(*) from pawl.command_list('post') group by 1;

-- Deleted as by retention: the keys and the audit stay. A batch that has not completed keeps its commands.
select count(*) from pawl.batch_new('00000000-0000-4000-8000-0000000000b1', 'open');
select count(*) from pawl.send('shop', array['part'], array['1']::jsonb[], p_batch_id => '00000000-0000-4000-8000-0000000000b1');
select c.verdict from pawl.cancel(array(select c.command_id from pawl.command c where c.type = 'part')) c;
select count(*) from pawl.kept_key;
select r.state, r.matched, r.decided, r.refused from pawl.bulk_start(:four, 'command', 'delete', '{"domain": "shop", "status": "CANCELED"}', null, 'bob') b, pg_temp.run(:four) r;
select s.refusals -> 0 ->> 'why' as why, s.refusals -> 0 ->> 'domain' as domain from pawl.bulk_show(:four) s;
select count(*) as keys from pawl.kept_key;
select count(*) as audits from pawl.kept_audit;
select status, count(*) from pawl.command_list('shop', p_limit => null) group by 1 order by 1;

-- A filter that cannot be read ends the operation with the reason; it does not run for ever.
select b.is_new from pawl.bulk_start(:five, 'process', 'cancel', '{"domain": "shop"}', null, 'ann') b;
update pawl.bulk_operation set filter = '{"since": "no time"}' where operation_id = :five;
select s.ended from pawl.bulk_step() s;
select s.state, s.error from pawl.bulk_show(:five) s;

select pawl.bulk_start(null, 'command', 'move', '{}');
select pawl.bulk_start(null, 'command', 'cancel', null);
select pawl.bulk_start(null, 'command', 'cancel', '[]');
select pawl.bulk_start(null, 'letter', 'cancel', '{}');
select pawl.bulk_start(null, 'command', 'retry', '{"status": "PENDING"}');
select pawl.bulk_start(null, 'command', 'cancel', '{"status": "COMPLETED"}');
select pawl.bulk_start(null, 'command', 'delete', '{"status": "PENDING"}');
select pawl.bulk_start(null, null, null, null);
select pawl.bulk_count('command', 'cancel', '{}', 0);
-- Retention.
select pawl.bulk_prune(100, pawl.now() + interval '1 s'), (select count(*) > 5 from pawl.bulk_chunk) as chunks;

-- The filters of lists.
select count(*) from pawl.command_page(p_correlation_id => 'c1');
select count(*) from pawl.command_page('post', 'PENDING', p_correlation_id => 'c1');
select count(*) from pawl.command_page('post', 'PENDING', p_correlation_id => 'c2');
select c.type from pawl.command_page(p_batch_id => '00000000-0000-4000-8000-0000000000b1') c;
select c.type from pawl.command_page(p_status => 'PENDING', p_batch_id => '00000000-0000-4000-8000-0000000000b1') c;
select count(*) from pawl.command_page(p_batch_id => '00000000-0000-4000-8000-0000000000b2');
select count(*) from pawl.command_page(p_command_id => (select c.command_id from pawl.command c where c.type = 'part'));
select count(*) from pawl.command_page(p_since => pawl.now() - interval '1 h', p_limit => 1000), (select count(*) from pawl.command_page(p_until => pawl.now() - interval '1 h')) u (until);
select distinct c.domain from pawl.command_page(p_domains => '{po*}') c;
select distinct c.domain from pawl.command_page(p_status => 'PENDING', p_domains => '{po*}') c;
select count(*) from pawl.send('keyed', array_fill('k'::text, '{3}'), array_fill('1'::jsonb, '{3}'), p_order_keys => '{a,a,b}');
select count(*) from pawl.command_page(p_order_key => 'a'), (select count(*) from pawl.command_page('keyed', 'PENDING', p_order_key => 'b')) b (b);
