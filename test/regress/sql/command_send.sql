-- A command is sent as people write it: with literals, with parameters that have no type, with typed values, in an array.
\set VERBOSITY terse
create function pg_temp.stored (p_id uuid) returns text language sql as $$
  select concat_ws(' ', d.name, c.type, c.payload, c.priority, c.max_attempts, c.reply_to, c.correlation_id)
  from pawl.command c join pawl.domain d on d.id = c.domain_id where c.command_id = p_id
$$;

select pg_temp.stored(pawl.send('shop', 'charge'));
select pg_temp.stored(pawl.send('shop', 'charge', '{"order": 7}'));
select pg_temp.stored(pawl.send('shop', 'charge', '{"order": 7}'::jsonb));
select pg_temp.stored(pawl.send('shop', 'charge', '{"order": 7}'::text));
select pg_temp.stored(pawl.send('shop', 'charge', '7', '018f0000-0000-7000-8000-000000000001', '2 hours', '9', '5', 'answers', 'c-1'));
select pg_temp.stored(pawl.send('shop', 'charge', '{}', p_reply_to => 'answers'));
select pg_temp.stored(pawl.send('shop', 'charge', '{}', p_priority => 9, p_max_attempts => 5, p_delay => '2 hours'));
select pg_temp.stored(pawl.send('shop', 'charge', '{}', gen_random_uuid(), interval '1 hour'));
prepare untyped as select pg_temp.stored(pawl.send($1, $2, $3));
execute untyped('shop', 'charge', '[1]');

do $$
declare
  v_batch uuid := (select b.batch_id from pawl.batch_new(gen_random_uuid(), null, null) b);
begin
  perform pawl.send('shop', 'charge', '{"order": 7}', p_batch => v_batch);
  raise notice '% in the batch', (select count(*) from pawl.command where batch_id is not null);
end
$$;

select s.ord, s.is_new, s.status, pg_temp.stored(s.command_id)
from pawl.send('shop', array['charge', 'ship'], array['{"order": 7}', '{"order": 8}']::jsonb[]) s;

-- Not as it should be.
select pawl.send('shop', 'charge', '{');
select pawl.send('shop', 'charge', '{}', 'seven');
select pawl.send('shop', 'charge', '8', '018f0000-0000-7000-8000-000000000001');
select pawl.send('no spaces', 'charge', '{}');
select pawl.send('shop', 'charge', '{}', p_batch => '018f0000-0000-7000-8000-000000000002');

-- A payload of many numbers is measured by its text, not by what jsonb takes, in time that grows with their count.
select pawl.payload_bytes(jsonb_agg(1)) as bytes from generate_series(1, 1390000);

-- Ids that are missing are made, and those that are given stay in their places.
select s.ord, s.command_id = '00000000-0000-4000-8000-0000000000ff' as given, s.is_new
from pawl.send('mixed', '{a,a,a}'::text[], '{1,2,3}'::jsonb[], array[null, '00000000-0000-4000-8000-0000000000ff', null]::uuid[]) s
order by s.ord;
select c.payload, c.command_id = '00000000-0000-4000-8000-0000000000ff' as given
from pawl.command c where c.domain_id = pawl.domain_find('mixed') order by c.payload;

-- Rows of queued commands say whether the payload is large, wherever they come from: a claim reads the lengths of these only.
select count(*) from pawl.send('bulk', '{a,b}'::text[], array[to_jsonb(repeat('x', 2000)), '1']);
select count(*) from pawl.send('bulk', '{c,d}'::text[], array[to_jsonb(repeat('x', 2000)), '1'], p_delays_ms => '{3600000,3600000}');
select count(*) from pawl.send('bulk', '{e,f}'::text[], array[to_jsonb(repeat('x', 2000)), '1'], p_order_keys => '{k,null}');
select count(*) from pawl.send('bulk', '{g,g}'::text[], array[to_jsonb(repeat('x', 2000)), to_jsonb(repeat('x', 2000))],
  '{00000000-0000-4000-8000-0000000000f1,00000000-0000-4000-8000-0000000000f1}');
select c.type, r.extras, d.extras as delayed
from pawl.command c left join pawl.ready r using (id) left join pawl.delayed d using (id)
where c.domain_id = pawl.domain_find('bulk') order by c.type;
select c.type, s.status from pawl.claim(pawl.domain_find('bulk'), 10, 60000, array_fill(0::bigint, array[10]), '{a,b}', 'w') c,
  pawl.settle(array[c.id], array[c.token], '{fail}') s order by c.type;
select count(*) from pawl.tsq_decide(array(select c.command_id from pawl.command c where c.type in ('a', 'b') and c.domain_id = pawl.domain_find('bulk')), 'retry', 'ann');
select c.type, r.extras from pawl.command c join pawl.ready r using (id)
where c.type in ('a', 'b') and c.domain_id = pawl.domain_find('bulk') order by c.type;
