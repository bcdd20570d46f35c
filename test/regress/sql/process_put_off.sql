-- process_put_off.sql - a process that went on after a wait and was put off shows no wait: it is queued for later, for another reason.
set client_min_messages = warning; -- a start of a type that nothing runs says so

create function claim_all () returns table (id bigint, token bigint) language sql as $$
  select c.id, c.token from pawl.claim(pawl.domain_find('process:shop'), 100, 60000, array_fill(0::bigint, array[10]), null, 'w') c
$$;
create function suspend (p_due timestamptz) returns text language sql as $$
  select w.verdict
  from claim_all() c,
    pawl.process_write(array[c.id], array[c.token], null, null, null, null, null, null, null, '{WAITING_FOR_ASYNC}', array['{"step": "paid"}'::jsonb],
      array['[{"kind": "signal", "name": "paid", "count": 1}]'::jsonb], array[pawl.micros(p_due)], null, null, null) w
$$;
create view shown as
  select s.shown ->> 'status' as status, s.shown ->> 'step' as step,
         array(select l.status from pawl.process_list(p_status => 'WAITING_FOR_ASYNC') l) as waiting,
         array(select l.status from pawl.process_list(p_status => 'PENDING') l) as pending
  from (select pawl.process_show(c.command_id) as shown from pawl.command c) s;

select pawl.start('order', p_domain => 'shop') is not null as started;
table shown;
select suspend(pawl.now());
table shown;
-- Its wait times out.
select moved from pawl.requeue_due(100, 'epoch', 1000);
table shown;
-- Its worker finds that it cannot be done yet.
select pawl.postpone(array[c.id], array[c.token], array[60000], 'locked') from claim_all() c;
table shown;
