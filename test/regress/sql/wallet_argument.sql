-- wallet_argument.sql - an argument without a meaning is refused by its name, and arrays cannot shift against each other.
create function k(n integer) returns uuid language sql as $$ select lpad(n::text, 32, '0')::uuid $$;
\set VERBOSITY terse
select count(*) from wallet.open(array['ann', 'bob', 'cid'], p_assets => array['EUR', 'EUR', 'EUR']);
select count(*) from wallet.open(array['ann', 'bob']);
select balance from wallet.post(array['topup', 'topup'], array[k(1), k(2)], array['ann', 'bob'], array[1000, 1000]);
select refusal from wallet.post(array['hold'], array[k(3)], array['bob'], array[10]);

-- A ref where it has no meaning would once take another owner's money.
select * from wallet.post(array['spend'], array[k(10)], array['ann'], array[5], p_refs => array[k(2)]);
select * from wallet.post(array['freeze'], array[k(10)], array['ann'], null, p_refs => array[k(2)]);
-- Each kind with each argument that it does not take.
create function refused(p_kind text, p_argument text) returns text language plpgsql as $$
begin
  perform wallet.post(array[p_kind], array[k(10)], case when p_argument = 'owner' or wallet.kind_takes(p_kind) like 'owner%' then array['ann'] end,
    case when p_argument = 'amount' or wallet.kind_takes(p_kind) like '%amount %' then array[5] end, case when p_argument = 'other' or p_kind = 'transfer' then array['bob'] end,
    case when p_argument = 'asset' then array['EUR'] end, case when p_argument = 'ref' or wallet.kind_takes(p_kind) like 'ref%' then array[k(3)] end,
    case when p_argument in ('legs', 'floor', 'expires_in_s', 'whole') then array[jsonb_build_object(p_argument, -1)]
         when p_kind = 'floor' then array['{"floor": 0}'::jsonb] when p_kind = 'multi' then array['{"legs": []}'::jsonb] end);
  return 'taken';
exception when sqlstate 'QW001' then
  return sqlerrm;
end
$$;
select kind, argument, refused(kind, argument)
from unnest(array['topup', 'spend', 'transfer', 'multi', 'hold', 'capture', 'void', 'refund', 'freeze', 'unfreeze', 'floor']) with ordinality k (kind, n)
cross join unnest(array['owner', 'other', 'amount', 'asset', 'ref', 'legs', 'floor', 'expires_in_s', 'whole']) with ordinality a (argument, m)
where strpos(wallet.kind_takes(kind), argument) = 0
order by n, m;
select * from wallet.post(array['expire'], array[k(10)], null, null, p_refs => array[k(3)]);
select * from wallet.post(array['spend'], array[k(10)], array['ann'], array[5], p_requests => array['[]']::jsonb[]);
select * from wallet.post(array['spend'], array[k(10)], array['ann'], array[5], p_requests => array['null']::jsonb[]);
select * from wallet.post(array['multi'], array[k(10)], null, null,
  p_requests => array['{"legs": [{"owner": "ann", "amount": -5, "ref": 1}, {"owner": "bob", "amount": 5}]}']::jsonb[]);
select * from wallet.post(array['multi'], array[k(10)], null, null,
  p_requests => array['{"legs": [{"owner": "ann", "amount": -5, "asset": 7}, {"owner": "bob", "amount": 5, "asset": 7}]}']::jsonb[]);

-- Arrays with another lower bound, more dimensions, another length, or none at all.
select * from wallet.post('[0:1]={topup,topup}', array[k(10), k(11)], array['ann', 'bob'], array[1, 2]);
select * from wallet.post(array['topup', 'topup'], array[k(10), k(11)], '[2:3]={ann,bob}', array[1, 2]);
select * from wallet.post(array['topup', 'topup'], array[k(10), k(11)], array['ann', 'bob'], '{{1,2}}');
select * from wallet.post(array[['topup'], ['topup']], array[k(10), k(11)], array['ann', 'bob'], array[1, 2]);
select * from wallet.post(array['topup', 'topup'], array[k(10), k(11)], array['ann', 'bob'], array[1, 2], p_assets => '{EUR}');
select * from wallet.post(array['topup', 'topup'], array[k(10), k(11)], array['ann', 'bob'], array[1, 2], p_requests => '{}');
select * from wallet.post(null, array[k(10)], array['ann'], array[1]);
select * from wallet.post(array['topup'], null, array['ann'], array[1]);
select * from wallet.post(array['topup', 'topup'], array[k(10), k(11)], '[2:3]={ann,bob}', array[1, 2], p_skip_locked => true);
select * from wallet.open('[0:1]={dan,eve}');
select * from wallet.open(array['dan', 'eve'], p_floors => '[0:1]={0,0}');
select * from wallet.open(null);
select * from wallet.get('[0:1]={ann,bob}');
select * from wallet.get(array['ann', 'bob'], array['EUR']);
select * from wallet.get(array[['ann'], ['bob']]);
select wallet.expire(null);
select wallet.expire(0);
select wallet.seal(null);
select wallet.seal(0);
select count(*) from wallet.txn where kind not in ('open', 'topup', 'hold');

-- Many legs among others: each answer is that of its own operation. Without CREDIT there is nothing that needs it.
select ord, txn_id = k(19 + ord) as own, refusal, kind, owner, asset, amount, balance
from wallet.post(array['topup', 'multi', 'spend', 'multi', 'hold'], array[k(20), k(21), k(22), k(23), k(24)], array['ann', null, 'bob', null, 'ann'],
  array[1, null, 2, null, 3]::bigint[], p_requests => array[null,
  '{"legs": [{"owner": "cid", "amount": 5, "asset": "EUR"}, {"owner": "@system", "amount": -5, "asset": "EUR"}]}', null,
  '{"legs": [{"owner": "bob", "amount": -7}, {"owner": "ann", "amount": 7}, {"owner": "cid", "amount": -1, "asset": "EUR"}, {"owner": "bob", "amount": 1, "asset": "EUR"}]}', null]::jsonb[]);
select differs from wallet.post(array['multi'], array[k(21)], null, null, p_requests => array[
  '{"legs": [{"owner": "cid", "amount": 5}, {"owner": "@system", "amount": -5}]}']::jsonb[]);
select * from wallet.verify();

-- Reading: what is out of range is said in words.
select * from wallet.entries('ann', p_limit => -1);
select * from wallet.entries('ann', p_limit => 0);
select * from wallet.entries('ann', p_limit => null);
select * from wallet.entries('ann', p_limit => 100001);
select * from wallet.statement('ann', p_limit => -1);
select * from wallet.statement('ann', p_limit => null);
select * from wallet.statement('ann', p_limit => 100001);
select count(*) from wallet.entries('ann', p_limit => 100000);
select count(*) from wallet.entries('ann', p_before => -9223372036854775808);
select count(*) from wallet.entries('ann', p_since => '-infinity', p_until => 'infinity');
select count(*) from wallet.statement('ann', p_since => '-infinity', p_until => 'infinity', p_after => 9223372036854775807);

-- Opening again reports the present floor, and compares with the first one.
select refusal from wallet.post(array['floor'], array[k(60)], array['ann'], null, p_requests => array['{"floor": -7}']::jsonb[]);
select owner, floor, is_new, differs from wallet.open(array['ann']);
select owner, floor, is_new, differs from wallet.open(array['ann'], p_floors => array[-7]::bigint[]);

-- Amounts that together leave the range of a stripe of @system are posted all the same, in more than one part.
select count(*) from wallet.open(array(select 'big ' || n from generate_series(1, 1200) n));
select count(*), count(*) filter (where p.refusal is null) as posted, min(p.ord), max(p.ord)
from wallet.post(array_fill('multi'::text, array[1200]), array(select k(1000 + n) from generate_series(1, 1200) n), null, null,
  p_requests => array(select jsonb_build_object('legs', jsonb_build_array(jsonb_build_object('owner', '@system', 'amount', -9007199254740991),
                        jsonb_build_object('owner', 'big ' || n, 'amount', 9007199254740991))) from generate_series(1, 1200) n)) p;
select count(*), count(*) filter (where p.refusal is null) as posted
from wallet.post(array_fill('spend'::text, array[1200]), array(select k(3000 + n) from generate_series(1, 1200) n),
  array(select 'big ' || n from generate_series(1, 1200) n), array_fill(9007199254740991, array[1200])) p;
select count(*), count(*) filter (where p.refusal is null) as posted, min(p.ord), max(p.ord)
from wallet.post(array_fill('refund'::text, array[1200]), array(select k(5000 + n) from generate_series(1, 1200) n), null, null,
  p_refs => array(select k(3000 + n) from generate_series(1, 1200) n)) p;
select count(*) from wallet.verify();

-- The same of several transfers, which are prepared together.
select * from wallet.post(array['transfer', 'transfer'], array[gen_random_uuid(), gen_random_uuid()], array['w1', 'w2'], array[-9223372036854775808, 1]::bigint[],
  array['w2', 'w1']);
