-- All wallets of owner $1, by asset.
select l.ord, l.owner, l.asset, l.balance, l.held, l.available, l.floor, l.version, l.frozen, l.metadata,
       pawl.micros(l.created_at) as created_at
from (select array_agg(a.asset) as assets, array_agg($1::text) as owners from wallet.assets_of($1::text) a) o
cross join lateral wallet.get(o.owners, o.assets) l
where o.assets is not null
order by l.asset
