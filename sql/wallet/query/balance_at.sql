-- A wallet's state at a time. $1 owner, $2 time, $3 asset
select b.balance, b.held, b.balance - b.held - coalesce(b.floor, 0) as available, b.floor, b.version
from wallet.balance_at($1::text, $2::text::timestamptz, $3::text) b
