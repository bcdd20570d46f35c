-- wallet_post.sql - the rows that each operation writes, and its verdict, under a fake clock.
\i ../fake_clock.sql
insert into pawl.fake_clock (at) values ('2026-01-01 00:00 UTC');
create function k(n integer) returns uuid language sql as $$ select lpad(n::text, 32, '0')::uuid $$;
-- Named by owner, so that nothing depends on ids; stripes of @system are one.
create view ledger as
select w.owner, a.code as asset, e.version, t.kind, e.amount, e.balance, e.held, e.floor, e.frozen
from wallet.entry e join wallet.wallet w on w.id = e.wallet_id join wallet.asset a on a.id = w.asset_id join wallet.txn t on t.id = e.txn
where w.owner <> '@system'
order by w.owner, a.code, e.version;
create view stands as
select w.owner, a.code as asset, sum(s.balance) as balance, sum(s.held) as held
from wallet.state s join wallet.wallet w on w.id = s.id join wallet.asset a on a.id = w.asset_id
group by w.owner, a.code order by w.owner, a.code;
create view unequal as
select 'sum of ' || t.txn_id as what from wallet.txn t join wallet.entry e on e.txn = t.id group by t.txn_id having sum(e.amount) <> 0
union all
select 'state of ' || s.id from wallet.state s join wallet.entry e on e.wallet_id = s.id and e.version = s.version
where (s.balance, s.held, s.floor, s.frozen) <> (e.balance, coalesce(e.held, 0), coalesce(e.floor, 0), coalesce(e.frozen, false))
union all
select 'holds of ' || s.id from wallet.state s
where s.held <> coalesce((select sum(h.amount - h.captured) from wallet.holds h where h.wallet_id = s.id and h.status = 'OPEN'), 0);

-- Wallets: the second opening changes nothing and returns the first; another floor or metadata is named.
select ord, owner, asset, floor, is_new, differs from wallet.open(array['ann', 'bob', 'ann', 'ann'], array[null, null, 'EUR', null],
                                                                  array[null, -50, null, null]::bigint[]);
select ord, is_new, differs from wallet.open(array['ann', 'bob', 'bob'], p_floors => array[-1, -50, 0]::bigint[],
                                             p_metadata => array[null, null, '{"a": 1}']::jsonb[]);
table ledger;

-- Top up, spend, transfer: each returns the owner's balances after it.
select ord, is_new, refusal, kind, owner, other, asset, amount, balance_before, balance, held, available, version, balance_now, at
from wallet.post(array['topup', 'spend', 'transfer', 'topup'], array[k(1), k(2), k(3), k(4)], array['ann', 'ann', 'ann', 'ann'],
                 array[1000, 300, 200, 7], array[null, null, 'bob', null], array[null, null, null, 'EUR']);
table stands;

-- The same again, another time and in another order: the same words, nothing new. balance_now is of now.
update pawl.fake_clock set at = at + interval '1 h';
select ord, is_new, refusal, differs, kind, owner, other, asset, amount, balance_before, balance, held, available, version, balance_now, at
from wallet.post(array['transfer', 'topup'], array[k(3), k(1)], array['ann', 'ann'], array[200, 1000], array['bob', null]);

-- Another body under a used key: the field is named, nothing is done.
select p.ord, p.is_new, p.differs from wallet.post(
  array['spend', 'topup', 'topup', 'topup', 'topup', 'transfer', 'topup', 'capture'], array[k(1), k(1), k(1), k(1), k(1), k(3), k(1), k(1)],
  array['ann', 'bob', 'ann', 'ann', 'nobody', 'ann', 'ann', null], array[1000, 1000, 1001, 1000, 1000, 200, 1000, 1000],
  array[null, null, null, null, null, 'ann2', null, 'bob'], array[null, null, null, 'EUR', null, null, null, null],
  array[null, null, null, null, null, null, null, k(1)], array[null, null, null, null, null, null, '{"metadata": {"a": 1}}', null]::jsonb[]) p;
select count(*) from wallet.txn where kind <> 'open';

-- Floors: as far as the floor and not further; in order, so the second of two may fail and the third succeed.
select ord, refusal, sentence, balance, available from wallet.post(array['spend', 'spend', 'spend'], array[k(10), k(11), k(12)],
  array['bob', 'bob', 'bob'], array[240, 11, 10]);
-- A refusal is kept, whatever came since; its amount was not taken.
select refusal, balance from wallet.post(array['topup'], array[k(13)], array['bob'], array[1000]);
select is_new, refusal, sentence, differs from wallet.post(array['spend'], array[k(11)], array['bob'], array[11]);
select is_new, refusal, differs from wallet.post(array['spend'], array[k(11)], array['bob'], array[12]);
-- What was never decided leaves no trace, so the key is free.
select is_new, refusal, sentence from wallet.post(array['topup', 'transfer', 'topup', 'refund', 'void'], array[k(14), k(15), k(16), k(17), k(18)],
  array['nobody', 'ann', 'ann', null, null], array[1, 1, 1, null, null]::bigint[], array[null, 'nobody', null, null, null], array[null, null, 'YEN', null, null],
  array[null, null, null, k(99), k(3)]);
select is_new, refusal, balance from wallet.post(array['topup'], array[k(14)], array['ann'], array[1]);
-- Money cannot grow over what JSON can hold.
select refusal, sentence from wallet.post(array['topup', 'topup'], array[k(19), k(20)], array['ann', 'ann'], array[9007199254740991, 1]);

-- Many legs: several assets, all or nothing.
select refusal, sentence, owner, amount, balance from wallet.post(array['multi'], array[k(30)], null, null, p_requests => array[
  '{"legs": [{"owner": "ann", "amount": -100}, {"owner": "bob", "amount": 60}, {"owner": "@system", "amount": 40},
             {"owner": "ann", "amount": 5, "asset": "EUR"}, {"owner": "@system", "amount": -5, "asset": "EUR"}]}']::jsonb[]);
select refusal, sentence from wallet.post(array['multi'], array[k(31)], null, null, p_requests => array[
  '{"legs": [{"owner": "bob", "amount": 1}, {"owner": "ann", "amount": 13, "asset": "EUR"}, {"owner": "@system", "amount": -13, "asset": "EUR"},
             {"owner": "ann", "amount": -9999}, {"owner": "@system", "amount": 9998}]}']::jsonb[]);
select refusal, sentence from wallet.post(array['multi'], array[k(32)], null, null, p_requests => array[
  '{"legs": [{"owner": "bob", "amount": 1}, {"owner": "nobody", "amount": -1}]}']::jsonb[]);
-- A leg without an asset is in CREDIT: given or not, it is the same request.
create function again(p_legs jsonb) returns table (is_new boolean, differs text) language sql as $$
  select p.is_new, p.differs from wallet.post(array['multi'], array[k(30)], null, null, p_requests => array[jsonb_build_object('legs', p_legs)]) p $$;
\set named '[{"owner": "ann", "amount": -100, "asset": "CREDIT"}, {"owner": "bob", "amount": 60, "asset": "CREDIT"}, {"owner": "@system", "amount": 40, "asset": "CREDIT"},              {"owner": "ann", "amount": 5, "asset": "EUR"}, {"owner": "@system", "amount": -5, "asset": "EUR"}]'
\set bare '[{"owner": "ann", "amount": -100}, {"owner": "bob", "amount": 60}, {"owner": "@system", "amount": 40},              {"owner": "ann", "amount": 5, "asset": "EUR"}, {"owner": "@system", "amount": -5, "asset": "EUR"}]'
select * from again(:'named');
select * from again(:'bare');
select differs from wallet.post(array['multi'], array[k(30)], null, null, p_requests => array[
  '{"legs": [{"owner": "ann", "amount": -100}, {"owner": "bob", "amount": 100}]}']::jsonb[]);

-- Refunds: in parts, never more than was taken, and not of what is no payment.
select ord, refusal, sentence, amount, owner, other, balance from wallet.post(array['refund', 'refund', 'refund', 'refund'],
  array[k(40), k(41), k(42), k(43)], null, array[150, 51, null, 1]::bigint[], p_refs => array[k(3), k(3), k(3), k(3)]);
select is_new, refusal, amount, differs from wallet.post(array['refund', 'refund'], array[k(42), k(42)], null, array[null, 50]::bigint[], p_refs => array[k(3), k(3)]);
select ord, refusal, sentence, amount from wallet.post(array['refund', 'refund', 'refund', 'refund'], array[k(44), k(45), k(46), k(47)], null,
  array[10, null, null, null]::bigint[], p_refs => array[k(30), k(30), k(30), k(40)]);
-- A refund of what was topped up needs the money to be there.
select refusal, sentence from wallet.post(array['refund'], array[k(48)], null, null, p_refs => array[k(13)], p_assets => array['EUR']);
select refusal, sentence from wallet.post(array['spend', 'refund'], array[k(49), k(50)], array['bob', null], array[900, null]::bigint[], p_refs => array[null, k(13)]);
table stands;

-- Frozen: nothing in, nothing out; freezing and what stands after it in the same call see each other.
select ord, refusal, sentence, kind, version from wallet.post(array['freeze', 'topup', 'transfer', 'unfreeze', 'topup'],
  array[k(60), k(61), k(62), k(63), k(64)], array['ann', 'ann', 'bob', 'ann', 'ann'], array[null, 1, 1, null, 1]::bigint[], array[null, null, 'ann', null, null]);
-- A floor that is moved counts for the next; one above the balance only stops what goes down.
select ord, refusal, sentence, balance, available from wallet.post(array['floor', 'spend', 'floor', 'topup', 'spend'],
  array[k(65), k(66), k(67), k(68), k(69)], array['bob', 'bob', 'bob', 'bob', 'bob'], array[null, 300, null, 5, 1]::bigint[],
  p_requests => array['{"floor": -200}', null, '{"floor": 0}', null, null]::jsonb[]);
table ledger;
table unequal;

-- Atomic: one that is refused takes all with it, also over stretches; and nothing is kept.
\set VERBOSITY terse
create temp table before as select (select count(*) from wallet.txn) as txns, (select sum(version) from wallet.state) as versions;
select * from wallet.post(array['topup', 'spend'], array[k(70), k(71)], array['ann', 'ann'], array[1, 99999], p_atomic => true);
select * from wallet.post(array['hold', 'capture', 'spend'], array[k(72), k(73), k(74)], array['ann', null, 'ann'], array[1, null, 99999]::bigint[],
                          p_refs => array[null, k(72), null], p_atomic => true);
select * from wallet.post(array['topup', 'topup'], array[k(75), k(1)], array['ann', 'ann'], array[1, 1], p_atomic => true);
select * from wallet.post(array['topup', 'topup'], array[k(76), k(77)], array['ann', 'nobody'], array[1, 1], p_atomic => true);
select (select count(*) from wallet.txn) = txns, (select sum(version) from wallet.state) = versions from before;
select ord, is_new, refusal, balance from wallet.post(array['topup', 'topup', 'spend'], array[k(70), k(1), k(71)], array['ann', 'ann', 'ann'], array[1, 1000, 1], p_atomic => true);

-- A key twice in one call is posted once, and both return the same.
select ord, is_new, refusal, differs, balance, version from wallet.post(array['topup', 'topup', 'spend', 'spend', 'topup'], array[k(80), k(80), k(81), k(81), k(80)],
  array['ann', 'ann', 'ann', 'ann', 'ann'], array[5, 5, 99999, 99999, 6]);
-- What a repeat brought in then does not pay for what is asked for now.
select balance from wallet.post(array['topup', 'spend'], array[k(90), k(91)], array['ann', 'ann'], array[100, 808]);
select ord, is_new, refusal, sentence, balance from wallet.post(array['topup', 'spend'], array[k(90), k(92)], array['ann', 'ann'], array[100, 1]);
-- As many as one call may hold, and a wallet opened right after them.
select count(*), count(*) filter (where p.is_new and p.refusal is null), max(p.version) - min(p.version) + 1 as versions
from wallet.post(array_fill('topup'::text, array[10000]), array(select k(100000 + n) from generate_series(1, 10000) n),
                 array_fill('bob'::text, array[10000]), array_fill(1::bigint, array[10000])) p;
select is_new from wallet.open(array['cid']);
table unequal;
