-- process_cancel.sql - a cancellation without compensation and one with it: the first of them decides.
set client_min_messages = warning; -- a start of a type that nothing runs says so

create function claim_all () returns table (id bigint, token bigint) language sql as $$
  select c.id, c.token
  from pawl.claim(pawl.domain_find('process:shop'), 100, 60000, array_fill(0::bigint, array[10]), null, 'w') c
$$;
create function phase (p_id bigint, p_token bigint, p_phase text) returns text language sql as $$
  select w.verdict
  from pawl.process_write(array[p_id], array[p_token], null, null, null, null, null, array[p_phase], null, null, null, null, null, null, null, array['why']) w
$$;
create function process (p_number integer) returns uuid language sql as $$
  select ('018f0000-0000-7000-8000-00000000000' || p_number)::uuid
$$;

-- Canceled while a step runs, which then fails: it ends before any compensation.
select pawl.start('order', '{}', process(1), 'shop') is not null as started;
create temp table a as select * from claim_all();
select verdict from pawl.cancel(array[process(1)], p_operator => 'ann');
select phase(a.id, a.token, 'compensating') from a;
select pawl.process_status(a.id), (select count(*) from pawl.process_step s where s.id = a.id) as records from a;
select e ->> 'event' as event, e ->> 'actor' as actor from jsonb_array_elements(pawl.process_show(process(1)) -> 'audit') e where e ->> 'event' <> 'SENT';

-- Canceled while it runs, then with compensation: the first decision stands, and is named.
select pawl.start('order', '{}', process(2), 'shop') is not null as started;
create temp table b as select * from claim_all();
select verdict, is_new, decision, operator from pawl.command_cancel(array[process(2)], null, 'ann');
select verdict, is_new, decision, operator from pawl.process_compensate(array[process(2)], null, 'ben');
select verdict, is_new, decision, operator from pawl.command_cancel(array[process(2)], null, 'ann');
select verdict from b, pawl.extend(array[b.id], array[b.token], 60000);
select verdict, is_new, decision, operator from pawl.process_compensate(array[process(2)], null, 'ben');
select pawl.process_status(b.id), (select count(*) from pawl.process_response r where r.id = b.id) as responses from b;

-- With compensation, then without: refused, before the compensation begins and after.
select pawl.start('order', '{}', process(3), 'shop') is not null as started;
create temp table c as select * from claim_all();
select verdict, is_new, decision, operator from pawl.process_compensate(array[process(3)], null, 'ann');
select verdict, is_new from pawl.command_cancel(array[process(3)], null, 'ben');
select phase(c.id, c.token, 'compensating') from c;
select verdict, is_new from pawl.command_cancel(array[process(3)], null, 'ben');
select verdict, is_new, decision, operator from pawl.process_compensate(array[process(3)], null, 'ann');
select verdict from c, pawl.extend(array[c.id], array[c.token], 60000);
select pawl.process_status(c.id) from c;

-- One process that was canceled stops no decision about others.
select verdict, is_new, decision from pawl.process_compensate(array[process(2), process(3), process(9)], null, 'ann') order by ord;
