-- json_size.sql - JSON that is small in the database and larger than 16 MiB as text is refused wherever a caller hands it over: what was
-- stored could be neither shown, nor replied, nor listed.
create table huge as select jsonb_agg('1e131071'::jsonb) as value from generate_series(1, 9000);
select pg_column_size(value) < 10000 as is_small from huge;

create function claim_one () returns table (id bigint, token bigint) language sql as $$
  select c.id, c.token from pawl.claim(pawl.domain_find('shop'), 1, 60000, array_fill(0::bigint, array[10]), null, 'w') c
$$;
select count(*) from pawl.send('shop', array['a', 'b', 'c'], array['1', '2', '3']::jsonb[],
  array['00000000-0000-4000-8000-00000000000a', '00000000-0000-4000-8000-00000000000b', '00000000-0000-4000-8000-00000000000c']::uuid[]);

-- Results, of settle and of an operator's decision. What is refused changes nothing, and can be settled again.
create table claimed as select * from claim_one();
select s.* from claimed c, huge h, pawl.settle(array[c.id], array[c.token], '{complete}', array[h.value]) s;
select s.* from claimed c, huge h, pawl.settle_items(true, array[c.id], array[c.token], '{complete}', array[h.value], null, null, null, null) s;
select s.settled, s.status from claimed c, pawl.settle(array[c.id], array[c.token], '{complete}', array['{"n": 1e130}']::jsonb[]) s;
select s.settled, s.status from claim_one() c, pawl.settle(array[c.id], array[c.token], '{fail}', null, array['broken']) s;
select d.* from huge h, pawl.command_decide('{00000000-0000-4000-8000-00000000000b}', null, 'complete', 'ann', null, h.value) d;
select d.* from huge h, pawl.tsq_decide('{00000000-0000-4000-8000-00000000000b}', 'complete', 'ann', null, h.value) d;
select d.verdict from pawl.tsq_decide('{00000000-0000-4000-8000-00000000000b}', 'complete', 'ann', null, '[1]') d;

-- Texts of errors are cut, as those of pods are.
select s.settled, s.status from claim_one() c, pawl.settle(array[c.id], array[c.token], '{reject}', null, array[repeat('x', 1000000)]) s;
select max(length(error)) from pawl.outcome;

-- More than PostgreSQL can write out, as an argument that the planner knows.
select wallet.is_too_large(h.value) as too_large, octet_length(pawl.payload_hash(h.value)) as hash_bytes from huge h;

-- Dead letters of applications.
select p.* from huge h, pawl.dead_letter_put(array['mail'], array['1'], array[h.value], array['x'], array['y']) p;
select is_new from pawl.dead_letter_put(array['mail'], array['2'], array['[1e130]']::jsonb[], array[repeat('x', 1000000)], array['y']);
select length(error_message) from pawl.failed_operations;

-- What sends and batches take was measured before.
select pawl.send('shop', 'a', value) from huge;
select pawl.batch_new(p_on_complete => jsonb_build_object('domain', 'shop', 'type', 'a', 'payload', value)) from huge;

select status, result is null as is_null from pawl.outcome order by id;
select json_typeof(pawl.command_show(command_id)) from pawl.command order by id;

-- What an earlier version has stored is shown with its size, beside the rest.
update pawl.outcome set result = (select value from huge) where id = (select id from claimed);
update pawl.command set payload = (select value from huge) where id = (select id from claimed);
select s.shown ->> 'status' as status, s.shown -> 'payload' as payload, s.shown -> 'result' ->> 'truncated' as result, json_array_length(s.shown -> 'audit') > 1 as has_audit
from (select pawl.command_show('00000000-0000-4000-8000-00000000000a') as shown) s;
select pawl.json_shown(null) is null as nothing, pawl.json_shown('[1e130]') = '[1e130]' as small;
