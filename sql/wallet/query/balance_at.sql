-- How a wallet stood. $1 owner, $2 moment, $3 asset
select b.balance, b.held, b.balance - b.held - coalesce(b.floor, 0) as available, b.floor, b.version
from wallet.balance_at($1::text, $2::text::timestamptz, $3::text) b
