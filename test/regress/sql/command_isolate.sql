-- command_isolate.sql - what fails because of the server or another transaction is not charged to a row, and what fails because of a
-- row keeps none beside it from going on.
\set VERBOSITY terse

-- A payload whose measuring fails with the SQLSTATE that it names.
create or replace function pawl.payload_bytes (p_payload jsonb) returns integer language plpgsql immutable as $$
begin
  if p_payload ? 'errcode' then
    raise exception 'planted' using errcode = p_payload ->> 'errcode';
  end if;
  return 1;
end
$$;
select count(pawl.send('shop', 'x', '{"errcode": "53200"}'::jsonb));
select pawl.claim_isolate(pawl.domain_find('shop'), 10, null);
update pawl.command set payload = '{"errcode": "55P03"}';
select pawl.claim_isolate(pawl.domain_find('shop'), 10, null);
select count(*) as queued from pawl.ready;
update pawl.command set payload = '{"errcode": "22P02"}';
select pawl.claim_isolate(pawl.domain_find('shop'), 10, null);
select t.error from pawl.tsq t;

-- A dead letter whose send fails in that way.
create function public.planted () returns trigger language plpgsql as $$
begin
  raise exception 'planted' using errcode = new.payload ->> 'errcode';
end
$$;
create trigger planted before insert on pawl.command for each row when (new.payload ? 'errcode') execute function public.planted();
select pawl.dead_letter_route('charge', 'shop', 'charge');
select count(*) from pawl.dead_letter_put(array['charge', 'charge'], array['a', 'b'], array['{"errcode": "53100"}', '{}']::jsonb[],
  array['e', 'e'], array['c', 'c'], 0);
select pawl.dead_letter_forward(10, 3, 60000);
select operation_key, status, retry_count, next_retry_at <= pawl.now() as due from pawl.failed_operations order by id;
update pawl.failed_operations set operation_data = '{"errcode": "55P03"}' where operation_key = 'a';
select pawl.dead_letter_forward(10, 3, 60000);
select operation_key, status, retry_count, next_retry_at <= pawl.now() as due from pawl.failed_operations order by id;
update pawl.failed_operations set operation_data = '{"errcode": "22P02"}', next_retry_at = pawl.now() where operation_key = 'a';
select pawl.dead_letter_forward(10, 3, 60000);
select operation_key, status, retry_count, error_code from pawl.failed_operations order by id;

-- A batch that cannot be completed: delayed commands and the batches beside it go on.
create function public.planted_batch () returns trigger language plpgsql as $$
begin
  raise exception 'planted';
end
$$;
create trigger planted before update on pawl.batch for each row when (old.name = 'bad') execute function public.planted_batch();
insert into pawl.batch (batch_id, name, created_at, sealed_at)
select gen_random_uuid(), case when n = 2 then 'bad' else 'good' end, pawl.now(), pawl.now() from generate_series(1, 5) n;
select count(pawl.send('shop', 'late', '{}', p_delay => '1 hour'));
update pawl.delayed set due = pawl.now() - interval '1 s';
select moved from pawl.requeue_due(10, 'epoch', 1000);
select name, count(completed_at) as completed from pawl.batch group by name order by name;

-- The last command of a batch is checked when the batch is made.
select pawl.batch_new(p_on_complete => '[]');
select pawl.batch_new(p_on_complete => '{"domain": "shop", "type": "done", "priority": 3}');
select pawl.batch_new(p_on_complete => '{"domain": 7, "type": "done"}');
select pawl.batch_new(p_on_complete => '{"domain": "shop"}');
select pawl.batch_new(p_on_complete => '{"domain": "shop", "type": "no spaces"}');
select pawl.batch_new(p_on_complete => '{"domain": "shop", "type": "done", "payload": {"errcode": "QU001"}}');
select pawl.batch_new(p_name => repeat('n', 201));
select is_new from pawl.batch_new(p_on_complete => '{"domain": "shop", "type": "done", "payload": [1]}');

-- A kept answer that is too old does not keep its key.
insert into pawl.kept_answer (key, request, status, body, kept_at)
select ('00000000-0000-4000-8000-00000000000' || n)::uuid, sha256('old'), 200, 'old', pawl.now() - interval '8 days' + n * interval '1 s'
from generate_series(1, 4) n;
select pawl.answer_keep('00000000-0000-4000-8000-000000000004', sha256('new'), 201, 'new') as kept;
select * from pawl.answer_find('00000000-0000-4000-8000-000000000004', sha256('new'));
select pawl.answer_keep('00000000-0000-4000-8000-000000000004', sha256('newer'), 201, 'newer') as kept;
select * from pawl.answer_find('00000000-0000-4000-8000-000000000004', sha256('newer'));

-- A pod has bounded the exponents of numbers itself: the payload's text is measured, not each of its numbers (the planted function
-- above would say 1, which is not stored).
select s.status from (select jsonb_agg(1) as p from generate_series(1, 2000)) j,
  pawl.send_items(true, 'big', array['x'], array[j.p], array[gen_random_uuid()], null, null, null, null, null, null, null) s;
select s.status from (select jsonb_agg(1) as p from generate_series(1, 2000)) j,
  pawl.send_items(false, 'big', array['x'], array[j.p], array[gen_random_uuid()], null, null, null, null, null, null, null) s;
select c.payload_bytes from pawl.command c where c.domain_id = pawl.domain_find('big') order by c.id;
-- And too large is refused in either case.
select s.status from pawl.send_items(true, 'big', array['x'], array[to_jsonb(repeat('x', 16777216))], array[gen_random_uuid()], null, null, null, null, null, null, null) s;
