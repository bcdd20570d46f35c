-- Entries of a wallet, oldest first. $1 owner, $2 asset, $3 since, $4 until, $5 after this number, $6 limit; $3 to $5 may be
-- null
select s.number, s.version, s.txn_id, s.kind, s.amount, s.balance, s.held, s.other, s.metadata, pawl.micros(s.at) as at
from wallet.statement($1::text, $2::text, $3::text::timestamptz, $4::text::timestamptz, $5::bigint, $6::integer) s
