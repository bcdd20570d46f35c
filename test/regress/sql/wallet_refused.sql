-- wallet_refused.sql - what SQL callers cannot do: bad arguments are named, the ledger is append-only, rights are few.
create function k(n integer) returns uuid language sql as $$ select lpad(n::text, 32, '0')::uuid $$;
\set VERBOSITY terse
select count(*) from wallet.open(array['ann', 'bob']);
select balance from wallet.post(array['topup'], array[k(1)], array['ann'], array[1000]);
create temp table before as select (select count(*) from wallet.txn) as txns, (select count(*) from wallet.entry) as entries,
  (select count(*) from wallet.wallet) as wallets, (select count(*) from wallet.asset) as assets, (select sum(version) from wallet.state) as versions;

-- Opening.
select * from wallet.open('{}');
select * from wallet.open(array['a', 'b'], array['EUR']);
select * from wallet.open(array[null]);
select * from wallet.open(array['']);
select * from wallet.open(array['@system']);
select * from wallet.open(array[E'two\nlines']);
select * from wallet.open(array[repeat('x', 256)]);
select * from wallet.open(array[repeat('é', 128)]);
select * from wallet.open(array['a'], array['eur']);
select * from wallet.open(array['a'], p_floors => array[1::bigint]);
select * from wallet.open(array['a'], p_floors => array[-9007199254740992]);
select * from wallet.open(array['a'], p_txn_ids => array[k(1)]);

-- Posting: the item and the field, wherever in the call it stands.
select * from wallet.post('{}', '{}', '{}', '{}');
select * from wallet.post(array['topup'], array[k(2), k(3)], array['ann'], array[1]);
select * from wallet.post(array['gift'], array[k(2)], array['ann'], array[1]);
select * from wallet.post(array[null], array[k(2)], array['ann'], array[1]);
select * from wallet.post(array['topup'], array[null]::uuid[], array['ann'], array[1]);
select * from wallet.post(array['topup'], array[k(2)], array['ann'], array[0]);
select * from wallet.post(array['topup'], array[k(2)], array['ann'], array[null]::bigint[]);
select * from wallet.post(array['topup'], array[k(2)], array['ann'], array[9007199254740992]);
select * from wallet.post(array['topup', 'topup', 'topup'], array[k(2), k(3), k(4)], array['ann', 'ann', 'ann'], array[1, -5, 0], p_requests => array['{"metadata": {}}', null, null]::jsonb[]);
select * from wallet.post(array['void', 'spend'], array[k(2), k(3)], array[null, 'ann'], array[null, -5]::bigint[], p_refs => array[k(1), null]);
select * from wallet.post(array['topup'], array[k(2)], null, array[1]);
select * from wallet.post(array['topup'], array[k(2)], array['@system'], array[1]);
select * from wallet.post(array['transfer'], array[k(2)], array['ann'], array[1]);
select * from wallet.post(array['transfer'], array[k(2)], array['ann'], array[1], array['@system']);
select * from wallet.post(array['transfer'], array[k(2)], array['ann'], array[1], array['ann']);
select * from wallet.post(array['capture'], array[k(2)], null, array[1]);
select * from wallet.post(array['void'], array[k(2)], null, array[1], p_refs => array[k(1)]);
select * from wallet.post(array['freeze'], array[k(2)], array['ann'], array[1]);
select * from wallet.post(array['hold'], array[k(2)], array['ann'], array[1], p_requests => array['{"expires_in_s": 0}']::jsonb[]);
select * from wallet.post(array['hold'], array[k(2)], array['ann'], array[1], p_requests => array['{"expires_in_s": 1.5}']::jsonb[]);
select * from wallet.post(array['floor'], array[k(2)], array['ann'], null, p_requests => array['{"floor": 1}']::jsonb[]);
select * from wallet.post(array['floor'], array[k(2)], array['ann'], null, p_requests => array['{"floor": "x"}']::jsonb[]);
select * from wallet.post(array['floor'], array[k(2)], array['ann'], null);
create function multi(p_legs text) returns table (refusal text, sentence text) language sql as $$
  select p.refusal, p.sentence from wallet.post(array['multi'], array[k(2)], null, null, p_requests => array[jsonb_build_object('legs', p_legs::jsonb)]) p $$;
select * from multi('[]');
select * from multi('[{"owner": "ann", "amount": 1}]');
select * from multi('[{"owner": "ann", "amount": 0}, {"owner": "bob", "amount": 0}]');
select * from multi('[{"owner": "ann", "amount": 1.0}, {"owner": "bob", "amount": -1.0}]');
select * from multi('[{"owner": "ann", "amount": 1e400}, {"owner": "bob", "amount": -1e400}]');
select * from multi('[{"owner": "ann", "amount": "1"}, {"owner": "bob", "amount": -1}]');
select * from multi('[{"owner": 7, "amount": 1}, {"owner": "bob", "amount": -1}]');
select * from multi('[{"owner": "ann", "amount": 2}, {"owner": "bob", "amount": -1}]');
select * from multi('[{"owner": "ann", "amount": 2}, {"owner": "ann", "amount": -2}]');
select * from multi('[{"owner": "ann", "amount": 2}, {"owner": "bob", "amount": -2, "asset": "EUR"}]');
select * from multi('[7, 8]');
select (select count(*) from wallet.txn) = txns and (select count(*) from wallet.entry) = entries and (select count(*) from wallet.wallet) = wallets
   and (select count(*) from wallet.asset) = assets and (select sum(version) from wallet.state) = versions as nothing_was_written
from before;

-- The ledger is append-only, also for a superuser.
update wallet.entry set amount = 1;
delete from wallet.entry;
truncate wallet.entry;
update wallet.txn set amount = 1;
delete from wallet.txn;
truncate wallet.txn;
update wallet.wallet set owner = 'x';
delete from wallet.wallet;
update wallet.seal set rows = 0;
delete from wallet.seal;
-- And what no function would do, the tables refuse.
insert into wallet.entry select wallet_id, 1000, -1, 0, 0, -1 from wallet.entry limit 1;
insert into wallet.entry select wallet_id, version, txn + 1, 5, 5 from wallet.entry where version = 1 limit 1;
insert into wallet.txn (id, at, txn_id, kind, asset_id, wallet_id, amount) select -1, at, txn_id, kind, asset_id, wallet_id, 1 from wallet.txn limit 1;

-- An application posts through the functions and writes no table.
set role pawl_app;
select refusal, balance from wallet.post(array['spend'], array[k(5)], array['ann'], array[1]);
select refusal, balance from wallet.post(array['topup'], array[k(7)], array['ann'], array[1]);
select is_new from wallet.open(array['cid']);
insert into wallet.entry values (1, 1, 1, 1, 1);
update wallet.entry set amount = 1;
delete from wallet.entry;
update wallet.state set balance = 1;
delete from wallet.txn;
update wallet.hold set status = 'OPEN';
select nextval('wallet.txn_seq');
reset role;
-- A reader reads.
set role pawl_reader;
select balance from wallet.get(array['ann']);
select balance from wallet.post(array['topup'], array[k(6)], array['ann'], array[1]);
select * from wallet.open(array['dan']);
select wallet.expire();
reset role;
select r.role, count(*) filter (where has_table_privilege(r.role, c.oid, 'insert, update, delete, truncate')) as writable
from pg_class c cross join (values ('pawl_app'), ('pawl_reader'), ('public')) r (role)
where c.relnamespace = 'wallet'::regnamespace and c.relkind = 'r'
group by r.role order by r.role;
select count(*) as public_functions from pg_proc p where p.pronamespace = 'wallet'::regnamespace and has_function_privilege('public', p.oid, 'execute');

-- An operation on a wallet that is busy has one row, although its key may have been decided between two statements.
select refusal from wallet.post('{topup}', array['00000000-0000-4000-8000-0000000000b1']::uuid[], '{ann}', '{5}');
select p.ord, p.refusal, p.sentence
from wallet.post_remaining((array[1], array['topup'], array['00000000-0000-4000-8000-0000000000b1']::uuid[], array[1],
  array[(select id from wallet.wallet where owner = 'ann' order by id limit 1)], array[null]::bigint[], array[5]::bigint[], array[null]::bigint[], array[null]::jsonb[])::wallet.batch,
  '{busy}', '{ann}', '{5}', now(), null, null) p;
