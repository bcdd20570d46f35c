-- wallet_hold.sql - holds: capture in parts, void, expiry.
\i ../fake_clock.sql
insert into pawl.fake_clock (at) values ('2026-01-01 00:00 UTC');
create function k(n integer) returns uuid language sql as $$ select lpad(n::text, 32, '0')::uuid $$;
create view holds as
select ltrim(translate(t.txn_id::text, '-', ''), '0') as key, h.amount, h.captured, h.status, to_char(h.expires_at at time zone 'UTC', 'HH24:MI:SS') as expires
from wallet.holds h join wallet.txn t on t.id = h.id order by h.id;
create view ann as select balance, held, available, version from wallet.get(array['ann']);
create view unequal as
select s.id, s.held from wallet.state s
where s.held <> coalesce((select sum(h.amount - h.captured) from wallet.holds h where h.wallet_id = s.id and h.status = 'OPEN'), 0);
select count(*) from wallet.open(array['ann', 'bob']);
select balance from wallet.post(array['topup'], array[k(1)], array['ann'], array[1000]);

-- What is held is not available: the balance stays, the rest can be spent, no more.
select ord, refusal, sentence, balance, held, available from wallet.post(array['hold', 'spend', 'hold', 'spend', 'hold'], array[k(2), k(3), k(4), k(5), k(6)],
  array['ann', 'ann', 'ann', 'ann', 'ann'], array[600, 401, 401, 100, 300]);
table ann;

-- Captured in parts, to an owner and to @system; more than is left is refused and kept; the rest is taken by naming no amount.
select ord, refusal, sentence, amount, owner, other, balance_before, balance, held, available from wallet.post(array['capture', 'capture', 'capture', 'capture', 'capture'],
  array[k(10), k(11), k(12), k(13), k(14)], null, array[200, 401, 100, null, null]::bigint[], array['bob', 'bob', null, 'bob', 'bob'],
  p_refs => array[k(2), k(2), k(2), k(2), k(2)]);
select is_new, refusal, sentence from wallet.post(array['capture'], array[k(11)], null, array[401], array['bob'], p_refs => array[k(2)]);
select is_new, refusal, amount, balance from wallet.post(array['capture'], array[k(13)], null, null, array['bob'], p_refs => array[k(2)]);
select differs from wallet.post(array['capture', 'capture', 'capture', 'void'], array[k(13), k(10), k(12), k(10)], null, array[300, 201, 100, null]::bigint[],
  array['bob', 'bob', 'bob', null], p_refs => array[k(2), k(2), k(2), k(2)]);
-- Void gives back what is left; afterwards the hold has ended for everybody.
select ord, refusal, sentence, amount, held, available from wallet.post(array['capture', 'void', 'capture', 'void', 'void'], array[k(20), k(21), k(22), k(23), k(21)], null,
  array[50, null, 1, null, null]::bigint[], p_refs => array[k(6), k(6), k(6), k(6), k(6)]);
-- A hold, its capture and its void in one call, each in its turn; also when the capture stands first.
select ord, refusal, sentence, amount, balance, held from wallet.post(array['capture', 'hold', 'capture', 'void', 'refund'], array[k(30), k(31), k(32), k(33), k(34)],
  array[null, 'ann', null, null, null], array[1, 40, 10, null, null]::bigint[], p_refs => array[k(31), null, k(31), k(31), k(32)]);
-- Amounts that are left open stay with their operations, whichever of them were decided before.
select ord, refusal, held from wallet.post(array['hold', 'hold', 'hold'], array[k(35), k(36), k(37)], array['ann', 'ann', 'ann'], array[1, 20, 30]);
select ord, is_new, refusal, amount, held from wallet.post(array['void'], array[k(38)], null, null, p_refs => array[k(35)]);
select ord, is_new, refusal, amount, held from wallet.post(array['void', 'void', 'void'], array[k(38), k(39), k(46)], null, null, p_refs => array[k(35), k(36), k(37)]);
-- Not to whose hold it is, not in another asset, not of what is no hold or a refused one.
select ord, refusal, sentence from wallet.post(array['hold', 'capture', 'capture', 'capture', 'capture', 'capture'], array[k(40), k(41), k(42), k(43), k(44), k(45)],
  array['ann', null, null, null, null, null], array[10, null, null, null, null, null]::bigint[], array[null, 'ann', 'bob', 'bob', 'bob', 'nobody'],
  array[null, null, 'EUR', null, null, null], array[null, k(40), k(40), k(1), k(4), k(40)]);
table holds;
table unequal;

-- Expiry: not before its time; from then on it cannot be captured, even before the expiry task has run; it expires once, however often the task runs.
select refusal, held from wallet.post(array['hold', 'hold', 'hold'], array[k(50), k(51), k(52)], array['ann', 'ann', 'ann'], array[10, 20, 30],
  p_requests => array['{"expires_in_s": 60}', '{"expires_in_s": 60}', '{"expires_in_s": 120}']::jsonb[]);
select wallet.expire() as released;
update pawl.fake_clock set at = at + interval '59999 ms';
select wallet.expire() as released;
select refusal, amount, held from wallet.post(array['capture'], array[k(53)], null, array[4], p_refs => array[k(50)]);
update pawl.fake_clock set at = at + interval '1 ms';
select refusal, sentence from wallet.post(array['capture'], array[k(54)], null, null, p_refs => array[k(50)]);
select wallet.expire(1) as first, wallet.expire(1) as second, wallet.expire(1) as third;
select refusal, sentence from wallet.post(array['void', 'capture'], array[k(55), k(56)], null, null, p_refs => array[k(50), k(51)]);
-- Frozen: what was promised is given back all the same, but not taken.
select ord, refusal, sentence, held from wallet.post(array['freeze', 'capture', 'hold'], array[k(60), k(61), k(62)], array['ann', null, 'ann'], array[null, 1, 1]::bigint[],
  p_refs => array[null, k(52), null]);
update pawl.fake_clock set at = at + interval '1 min';
select wallet.expire() as released;
select refusal, held from wallet.post(array['void'], array[k(63)], null, null, p_refs => array[k(40)]);
table holds;
table ann;
table unequal;

-- A floor raised above what a wallet has: what was held before is paid, nothing else, and money still comes in.
select count(*) from wallet.open(array['zed'], p_floors => array[-500]::bigint[]);
select ord, refusal, sentence, balance, held, available
from wallet.post(array['spend', 'hold', 'floor', 'capture', 'spend', 'hold', 'transfer', 'topup', 'void'],
  array[k(70), k(71), k(72), k(73), k(74), k(75), k(76), k(77), k(78)], array['zed', 'zed', 'zed', null, 'zed', 'zed', 'zed', 'zed', null],
  array[300, 150, null, 100, 1, 1, 1, 50, null]::bigint[], array[null, null, null, null, null, null, 'bob', null, null],
  p_refs => array[null, null, null, k(71), null, null, null, null, k(71)],
  p_requests => array[null, null, '{"floor": 0}', null, null, null, null, null, null]::jsonb[]);
table unequal;
