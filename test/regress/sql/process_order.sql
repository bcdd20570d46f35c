-- process_order.sql - records of a process are in the order in which they were written, whatever clocks say.
\i ../fake_clock.sql

create function claim_all () returns table (id bigint, token bigint) language sql as $$
  select c.id, c.token from pawl.claim(pawl.domain_find('process:shop'), 100, 60000, array_fill(0::bigint, array[10]), null, 'w') c
$$;
-- Began so long before now, which is what a pod estimates.
create table leased (id bigint, token bigint);
create function put (p_step text, p_error text default null, p_began interval default '0', p_ends text default null, p_kind text default 'step') returns text language sql as $$
  select w.verdict
  from leased l, pawl.process_write(array[l.id], array[l.token], array[jsonb_build_object('step', p_step, 'kind', p_kind,
      'started_us', pawl.micros(pawl.now() - p_began))], array[to_jsonb(p_step)], array[p_error], null, null, null, null, null, null, null, null, array[p_ends], null, array[p_error]) w
$$;
-- As the worker reads them that has the lease; there is none when the process is in the troubleshooting queue or waits for its turn.
create function records () returns table (step text, error text) language plpgsql as $$
begin
  insert into pawl.lease (id, token, until, domain_id, priority, attempt, max_attempts, extras, started_at)
  select c.id, 0, pawl.now(), c.domain_id, c.priority, 1, c.max_attempts, false, pawl.now() from pawl.command c on conflict do nothing;
  return query select pawl.record_text(r.step, r.item, r.undo, r.kind, r.aside), s ->> 'error'
    from pawl.process_load(array(select l.id from pawl.lease l order by l.id), array(select l.token from pawl.lease l order by l.id), 0) l
    cross join lateral jsonb_array_elements(l.steps) with ordinality s (s, n)
    cross join lateral pawl.record_read(s) r
    order by l.id, n;
  delete from pawl.lease l where l.token = 0;
end
$$;
select version from pawl.process_define('shop', 'order', '{"type": "order", "domain": "shop", "steps": [
  {"name": "pay", "exec": "true", "compensate": {"exec": "true"}}, {"name": "mail", "exec": "true"}, {"name": "x", "exec": "true"}]}', null, 'compensate', 'test', '[
  {"name": "pay", "kind": "exec", "acts": true, "is_compensated": true}, {"name": "mail", "kind": "exec", "acts": true}, {"name": "x", "kind": "exec", "acts": true}]');

-- A step whose begin was estimated too early: what was recorded before it is not set aside.
select pawl.start('order', p_process_id => '018f0000-0000-7000-8000-000000000001', p_domain => 'shop') is not null as started;
insert into leased select * from claim_all();
select put('pay');
select put('mail');
select put('x', 'no', '1 min', 'fail');
select verdict from pawl.process_retry('{018f0000-0000-7000-8000-000000000001}', '{shop}', 'ann', null, 'x');
select * from records();
-- A clock that was set back in between.
truncate leased; insert into leased select * from claim_all();
insert into pawl.fake_clock (at) values ('2020-01-01 00:00 UTC');
select put('x', 'no', '0', 'fail');
select * from records();
select verdict from pawl.process_retry('{018f0000-0000-7000-8000-000000000001}', '{shop}', 'ann', null, 'mail');
select * from records();
truncate pawl.fake_clock;

-- A step that began and has not ended, because its workers died: it is run again with another key.
truncate pawl.process_step;
truncate leased; insert into leased select * from claim_all();
select put('pay', null, '0', 'fail', 'input');
select verdict from pawl.process_retry('{018f0000-0000-7000-8000-000000000001}', '{shop}', 'ann', null, 'pay');
select * from records();
