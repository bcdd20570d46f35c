-- wallet_metadata.sql - metadata that is small in jsonb and huge as text is refused, because sealing and statements write it out.

create view huge as select jsonb_build_object('a', jsonb_agg('1e131071'::jsonb)) as metadata from generate_series(1, 9000);
select count(*) from wallet.open('{ann,bob}');
select refusal from wallet.post('{topup}', array[gen_random_uuid()], '{ann}', '{100}');
-- Alone, which takes the short path, and beside others.
select wallet.post('{transfer}', array[gen_random_uuid()], '{ann}', '{5}', '{bob}', p_requests => array[jsonb_build_object('metadata', metadata)]) from huge;
select wallet.post('{transfer,transfer}', array[gen_random_uuid(), gen_random_uuid()], '{ann,ann}', '{5,5}', '{bob,bob}',
  p_requests => array[null, jsonb_build_object('metadata', metadata)]) from huge;
select wallet.post('{spend}', array[gen_random_uuid()], '{bob}', '{5}', p_requests => array[jsonb_build_object('metadata', metadata)]) from huge;
select wallet.open('{carl}', p_metadata => array[metadata]) from huge;
-- Also with few digits, when they are many as text; and up to the limit it is accepted.
select wallet.post('{transfer}', array[gen_random_uuid()], '{ann}', '{5}', '{bob}', p_requests => array['{"metadata": {"a": 1e131071, "b": 1e131071}}'::jsonb]);
select refusal from wallet.post('{transfer}', array[gen_random_uuid()], '{ann}', '{5}', '{bob}', p_requests => array['{"metadata": {"a": 1e60000}}'::jsonb]);
select count(*) from wallet.txn;
select wallet.seal() > 0 as sealed;

-- What an earlier version has stored stops neither sealing nor listings, and a change of it is found.
select refusal from wallet.post('{transfer,transfer,transfer}', array['00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000002',
  '00000000-0000-4000-8000-000000000003']::uuid[], '{ann,ann,ann}', '{1,1,1}', '{bob,bob,bob}');
set session_replication_role = replica;
update wallet.txn set request = (select jsonb_build_object('metadata', metadata) from huge) where txn_id = '00000000-0000-4000-8000-000000000002';
reset session_replication_role;
select wallet.seal() > 0 as sealed;
select max(upto) >= (select max(id) from wallet.txn) as all_sealed from wallet.seal;
select * from wallet.verify();
select e.txn_id, e.metadata from wallet.entries('bob', 'CREDIT', p_limit => 3) e;
select s.txn_id, s.metadata ->> 'truncated' as truncated from wallet.statement('bob', 'CREDIT') s where s.txn_id::text like '00000000%';
set session_replication_role = replica;
update wallet.txn set request = (select jsonb_build_object('metadata', jsonb_set(metadata, '{a,77}', '1e131070')) from huge) where txn_id = '00000000-0000-4000-8000-000000000002';
reset session_replication_role;
select what, sentence from wallet.verify();
