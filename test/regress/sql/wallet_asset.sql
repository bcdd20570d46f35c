-- wallet_asset.sql - an asset comes with its first wallet, once; an opening that is refused creates none.
create function k(n integer) returns uuid language sql as $$ select lpad(n::text, 32, '0')::uuid $$;
\set VERBOSITY terse
select owner, asset, is_new from wallet.open(array['ann'], array['EUR'], p_txn_ids => array[k(1)]);
-- The key was used before.
select * from wallet.open(array['bob'], array['GBP'], p_txn_ids => array[k(1)]);
select owner, asset, is_new from wallet.open(array['ann', 'ann', 'bob', 'cid'], array['USD', 'CHF', 'EUR', 'USD']);
select a.code, count(*) filter (where w.owner = '@system') as stripes
from wallet.asset a join wallet.wallet w on w.asset_id = a.id group by a.code order by a.code;
