-- wallet_clock.sql - a clock that jumps ahead once must not leave the ledger in the future when it is right again.
\i ../fake_clock.sql
insert into pawl.fake_clock (at) values ('2026-01-01 00:00 UTC');
create function k(n integer) returns uuid language sql as $$ select lpad(n::text, 32, '0')::uuid $$;
create view times as select t.kind, w.owner, to_char(t.at at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS') as at
  from wallet.txn t join wallet.wallet w on w.id = t.wallet_id where t.kind <> 'open' order by t.id;
select count(*) from wallet.open(array['ann', 'bob', 'cid']);
select count(*) from wallet.post(array['topup', 'topup', 'topup'], array[k(1), k(2), k(3)], array['ann', 'bob', 'cid'], array[100, 100, 100]);
select wallet.clock_ahead() as seconds;

-- A year ahead, for one posting; then the clock is right, and so is every time from then on.
update pawl.fake_clock set at = at + interval '1 year';
select count(*) from wallet.post(array['topup', 'transfer'], array[k(4), k(5)], array['ann', 'ann'], array[1, 1], array[null, 'bob']);
update pawl.fake_clock set at = '2026-01-01 00:01 UTC';
select wallet.clock_ahead() > 31500000 as ahead;
select refusal, sentence from wallet.post(array['topup', 'transfer', 'topup', 'hold'], array[k(6), k(7), k(8), k(9)], array['ann', 'bob', 'cid', 'bob'], array[1, 1, 1, 10],
  array[null, 'cid', null, null], p_requests => array[null, null, null, '{"expires_in_s": 60}']::jsonb[]);
table times;
-- The hold lives as long as the clock says, not shorter and not longer.
update pawl.fake_clock set at = '2026-01-01 00:01:59 UTC';
select wallet.expire() as released;
select refusal, held from wallet.post(array['capture'], array[k(10)], null, array[4], p_refs => array[k(9)]);
update pawl.fake_clock set at = '2026-01-01 00:02 UTC';
select wallet.expire() as released;

-- Set back by a little: the times of a wallet's entries do not go back.
select count(*) from wallet.post(array['topup'], array[k(11)], array['cid'], array[1]);
update pawl.fake_clock set at = at - interval '3 s';
select to_char(at at time zone 'UTC', 'HH24:MI:SS') as at from wallet.post(array['topup'], array[k(12)], array['cid'], array[1]);
update pawl.fake_clock set at = at - interval '10 s';
select to_char(at at time zone 'UTC', 'HH24:MI:SS') as at from wallet.post(array['topup'], array[k(13)], array['cid'], array[1]);
-- The order is that of the versions, and the ledger adds up.
select e.version, t.kind from wallet.entry e join wallet.txn t on t.id = e.txn join wallet.wallet w on w.id = e.wallet_id where w.owner = 'cid' order by e.version;
select * from wallet.verify();

-- Several transfers in one call, of wallets that different calls have changed last: no time goes back by a little, and none is far ahead.
update pawl.fake_clock set at = '2026-01-02 00:00 UTC';
select count(*) from wallet.post(array['topup'], array[k(20)], array['ann'], array[10]);
update pawl.fake_clock set at = at + interval '2 s';
select count(*) from wallet.post(array['topup', 'topup'], array[k(21), k(22)], array['bob', 'bob'], array[10, 10]);
update pawl.fake_clock set at = at - interval '1 s';
select to_char(at at time zone 'UTC', 'HH24:MI:SS') as at
from wallet.post(array['transfer', 'transfer'], array[k(23), k(24)], array['ann', 'bob'], array[1, 1], array['bob', 'cid']);
update pawl.fake_clock set at = at - interval '10 s';
select to_char(at at time zone 'UTC', 'HH24:MI:SS') as at
from wallet.post(array['transfer', 'transfer'], array[k(25), k(26)], array['ann', 'bob'], array[1, 1], array['bob', 'cid']);
select * from wallet.verify();
