-- A login that has only pawl_handler settles with a token. Without one it locks nothing, and what it says about commands that do not exist is
-- not kept: code of applications runs in its sessions.
select count(*) from pawl.send('shop', array['charge', 'charge'], array['1', '2']::jsonb[],
  array['00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000002']::uuid[]);
select count(*) from pawl.claim(pawl.domain_find('shop'), 1, 600000, array_fill(0::bigint, array[10]), null, 'w');
select id, token + 1 as wrong, nextval('pawl.command_seq') as gone from pawl.lease \gset

-- Wrong tokens lock no lease, whoever names them.
begin;
set local role pawl_handler;
select ord, settled, again, status from pawl.settle_items(false, array[:id, :id]::bigint[], array[1, :wrong]::bigint[], array['complete', 'fail'],
  null, array[null, 'x'], null, null, null);
select ord, verdict from pawl.process_write(array[:id]::bigint[], array[:wrong]::bigint[], array[jsonb_build_object('step', 'a')],
    array['1']::jsonb[], null, array['{}']::jsonb[], array[0]::bigint[], null, null, null, null, null, null, null, null, null);
set local role pawl_worker;
select ord, settled, status from pawl.settle(array[:id]::bigint[], array[:wrong]::bigint[], array['complete']);
select ord, verdict from pawl.extend(array[:id]::bigint[], array[:wrong]::bigint[], 1000);
select pawl.release(array[:id]::bigint[], array[:wrong]::bigint[]), pawl.postpone(array[:id]::bigint[], array[:wrong]::bigint[], array[0]::bigint[], 'x');
reset role;
select xmax as locked_by from pawl.lease;
rollback;

-- Items about commands that do not exist: a number that was never given, none, one that may have been pruned; with the id of nothing, and with
-- that of another command.
prepare orphans as
select ord, settled, status from pawl.settle_items(false, array[1000000, 0, :gone, 0, 0]::bigint[], array[1, 1, 1, 1, 1]::bigint[],
  array['complete', 'reject', 'complete', 'complete', 'complete'], null, null, null, array['shop', 'shop', 'shop', 'shop', 'elsewhere'],
  array['00000000-0000-4000-8000-00000000000a', '00000000-0000-4000-8000-00000000000b', '00000000-0000-4000-8000-00000000000c',
        '00000000-0000-4000-8000-000000000002', '00000000-0000-4000-8000-000000000002']::uuid[]);
set role pawl_handler;
execute orphans;
reset role;
select count(*) from pawl.audit where details ? 'orphan';
set role pawl_worker;
execute orphans;
reset role;
select id, event, command_id, details from pawl.audit where details ? 'orphan' order by command_id;
