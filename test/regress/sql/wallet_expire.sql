-- wallet_expire.sql - nothing that a client posts, and no hold that was damaged, keeps holds from expiring.
\i ../fake_clock.sql
insert into pawl.fake_clock (at) values ('2026-01-01 00:00 UTC');
create function k(n integer) returns uuid language sql as $$ select lpad(n::text, 32, '0')::uuid $$;
create view holds as select ltrim(translate(t.txn_id::text, '-', ''), '0') as key, h.status from wallet.holds h join wallet.txn t on t.id = h.id order by h.id;
select count(*) from wallet.open(array(select 'o' || n from generate_series(1, 6) n));
select count(*) from wallet.post(array_fill('topup'::text, array[6]), array(select k(n) from generate_series(1, 6) n), array(select 'o' || n from generate_series(1, 6) n),
  array_fill(100::bigint, array[6]));
create function held(p_from integer, p_upto integer) returns bigint language sql as $$
  select count(*) from wallet.post(array_fill('hold'::text, array[p_upto - p_from + 1]), array(select k(n) from generate_series(p_from, p_upto) n),
    array(select 'o' || 1 + n % 6 from generate_series(p_from, p_upto) n), array_fill(5::bigint, array[p_upto - p_from + 1]),
    p_requests => array_fill('{"expires_in_s": 60}'::jsonb, array[p_upto - p_from + 1])) $$;

-- Keys that follow from the hold's own, used before its expiry.
select held(10, 15);
select count(*) from wallet.post(array_fill('spend'::text, array[6]), array(select md5('pawl hold expiry ' || k(n))::uuid from generate_series(10, 15) n),
  array_fill('o1'::text, array[6]), array_fill(1::bigint, array[6]));
update pawl.fake_clock set at = at + interval '1 min';
select wallet.expire(2) as released;
select wallet.expire() as released;
table holds;
-- An expiry's own key is nobody's: it is random, and each hold ended once.
select count(*), count(distinct t.txn_id), bool_or(t.txn_id = md5('pawl hold expiry ' || h.txn_id)::uuid) as predictable
from wallet.txn t join wallet.txn h on h.id = t.ref where t.kind = 'expire';

-- Of six, the transaction of one is gone and the wallet of another says that nothing is held.
select held(20, 25);
set session_replication_role = replica;
delete from wallet.txn where txn_id = k(20);
update wallet.entry e set held = null from wallet.txn t where t.txn_id = k(21) and e.txn = t.id;
reset session_replication_role;
update pawl.fake_clock set at = at + interval '1 min';
\set VERBOSITY terse
select wallet.expire(1) as first, wallet.expire(1) as second, wallet.expire(1) as third, wallet.expire(1) as fourth, wallet.expire(1) as fifth;
table holds;
select what, count(*) from wallet.verify() where sentence not like '%as it was sealed' group by what order by what;
