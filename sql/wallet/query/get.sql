-- The present state of wallets; a row for each that exists. $1 owners, $2 assets or null
select l.ord, l.owner, l.asset, l.balance, l.held, l.available, l.floor, l.version, l.frozen, l.metadata,
       pawl.micros(l.created_at) as created_at
from wallet.get($1::text[], $2::text[]) l
