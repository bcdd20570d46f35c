-- array_check.sql - arrays that unnest(), subscripts and cardinality() would count differently are refused everywhere.

select pawl.array_check('ids', array[1, 2], 2, 'QU001');
select pawl.array_check('ids', '{}'::integer[], 0, 'QU001');
select pawl.array_check('ids', null::integer[], 2, 'QU001', true);
\set VERBOSITY sqlstate
select pawl.array_check('ids', null::integer[], 2, 'QU001');
\set VERBOSITY default
select pawl.array_check('ids', null::integer[], null, 'QU001');
select pawl.array_check('ids', array[1, 2], null, 'QU001');
select pawl.array_check('ids', array[1, 2], 3, 'QU001');
select pawl.array_check('ids', '{}'::integer[], 1, 'QU001');
select pawl.array_check('ids', '[0:1]={1,2}'::integer[], 2, 'QU001');
select pawl.array_check('ids', '[2:3]={1,2}'::integer[], 2, 'QU001', true);
select pawl.array_check('ids', '{{1,2},{3,4}}'::integer[], 4, 'QU001');

-- It is inlined: the plan shows no call of it.
do $$
declare
  v_line text;
begin
  for v_line in execute 'explain (verbose) select pawl.array_check(''ids'', a.ids, 2, ''QU001'') from (values (array[1])) a (ids)' loop
    assert v_line !~ 'array_check', v_line;
  end loop;
end
$$;

-- Every function of the bus that takes arrays.
select * from pawl.send('shop', '[0:1]={a,b}'::text[], '{1,2}'::jsonb[]);
select * from pawl.send('shop', '{{a,b},{c,d}}'::text[], '{1,2,3,4}'::jsonb[]);
select * from pawl.send('shop', '{a,b}'::text[], '[2:3]={1,2}'::jsonb[]);
select * from pawl.send('shop', '{a,b}'::text[], null);
select * from pawl.send('shop', null, '{1,2}'::jsonb[]);
select * from pawl.send('shop', '{a,b}'::text[], '{1,2}'::jsonb[], p_delays_ms => '{1}');
select * from pawl.settle(null, '{1}', '{complete}');
select * from pawl.settle('{1}', null, '{complete}');
select * from pawl.settle('{1}', '{1}', null);
select * from pawl.settle('[0:0]={1}', '{1}', '{complete}');
select * from pawl.settle('{1}', '{{1}}', '{complete}');
select * from pawl.settle('{1}', '{1}', '{complete}', '{1,2}');
select * from pawl.settle('{1}', '{1}', '{retry}', p_delays_ms => '{-1}');
select * from pawl.extend(null, '{1}', 1000);
select * from pawl.extend('{1}', null, 1000);
select * from pawl.extend('{1}', '[0:0]={1}', 1000);
select * from pawl.extend('{1}', '{1}', null);
select pawl.release(null, '{1}');
select pawl.release('{1}', null);
select pawl.release('{1}', '[0:0]={1}');
select pawl.release('{1,2}', '{1}');
select * from pawl.claim(1, 1, 1000, null, null, null);
select * from pawl.claim(1, 1, 1000, '{0,0}', null, null);
select * from pawl.claim(1, null, 1000, array_fill(0, '{10}'), null, null);
select * from pawl.claim(1, 1, null, array_fill(0, '{10}'), null, null);
select * from pawl.claim(1, 1, 1000, array_fill(0, '{10}'), '{{a},{b}}', null);
-- Names of workers have a bound, also each of several.
select * from pawl.claim(1, 1, 1000, array_fill(0, '{10}'), null, null);
select * from pawl.claim(1, 1, 1000, array_fill(0, '{10}'), null, '');
select * from pawl.claim(1, 1, 1000, array_fill(0, '{10}'), null, repeat('ä', 201));
select * from pawl.claim(1, 1, 1000, array_fill(0, '{10}'), null, repeat('w', 400));
select * from pawl.claim(1, 2, 1000, array_fill(0, '{10}'), null, 'w', '{a,NULL}');
select * from pawl.claim(1, 2, 1000, array_fill(0, '{10}'), null, 'w', array['a', repeat('w', 401)]);
select * from pawl.claim(1, 2, 1000, array_fill(0, '{10}'), null, 'w', '{a,b}');
select * from pawl.process_define('shop', 'order', '{}', null, 'fail', repeat('a', 401), '[{}]');
select * from pawl.decided_position(1, null, null);
select * from pawl.claimers_ready(null, null, null);
select * from pawl.claimers_ready('{a}', null, array_fill(0, '{10}'));
select * from pawl.claimers_ready('{a}', '{t,u}', array_fill(0, '{10}'));
select * from pawl.claimers_ready('{a,b}', '{t,null}', array_fill(0, '{10}'));
select * from pawl.requeue_due(null, 'epoch', 1000, 'epoch');
select * from pawl.requeue_due(1, null, 1000, 'epoch');
select * from pawl.requeue_due(1, 'epoch', null, 'epoch');
select * from pawl.requeue_due(1, 'epoch', 1000, null);
select * from pawl.cancel(null, null, 'ann');
select * from pawl.cancel('{{00000000-0000-4000-8000-000000000001}}', null, 'ann');
select * from pawl.tsq_decide(null, 'retry', 'ann', null, null);
select * from pawl.tsq_decide('{{00000000-0000-4000-8000-000000000001}}', 'retry', 'ann', null, null);
