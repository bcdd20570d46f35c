-- audit_command_id.sql - every event of a command that is there, or that retention has deleted, is found by the command's id.
select pawl.send('shop', 'charge', '1'::jsonb, '00000000-0000-4000-8000-00000000000a') is not null as sent;
select pawl.retry_policy_set('shop', null, '{0}');
create function claim_one () returns table (id bigint, token bigint) language sql as $$
  select c.id, c.token from pawl.claim(pawl.domain_find('shop'), 1, 60000, array_fill(0::bigint, array[10]), null, 'w') c
$$;
create view events as
  select event, attempt, actor from pawl.audit where command_id = '00000000-0000-4000-8000-00000000000a' order by at, step, place;
select s.status from claim_one() c, pawl.settle(array[c.id], array[c.token], '{retry}', null, array['busy']) s;
select count(*) from claim_one();
select * from events;
select s.status from (select id, token from pawl.lease) c, pawl.settle(array[c.id], array[c.token], '{fail}', null, array['broken']) s;
select verdict from pawl.tsq_decide('{00000000-0000-4000-8000-00000000000a}', 'retry', 'ann');
select s.status from claim_one() c, pawl.settle(array[c.id], array[c.token], '{complete}') s;
select * from events;
select count(*) from pawl.audit where command_id is null;

-- As JSON it is as before, and by id it is found by index.
select json_array_length(pawl.command_show('00000000-0000-4000-8000-00000000000a') -> 'audit');

-- Deleted: what its own rows said is still found, and so are all events by its number.
update pawl.outcome set ended_at = ended_at - interval '40 days', started_at = started_at - interval '40 days';
update pawl.command set created_at = created_at - interval '40 days';
select pawl.prune(10, interval '30 days', interval '90 days');
select event, attempt from pawl.audit where command_id = '00000000-0000-4000-8000-00000000000a' order by at, step, place;
select count(*) from pawl.audit where id = 1;
