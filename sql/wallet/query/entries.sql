-- Entries of a wallet, newest first. $1 owner, $2 asset, $3 limit, $4 before this number, $5 kind, $6 since, $7 until;
-- from $4 on null is no limit
select e.number, e.version, e.txn_id, e.kind, e.amount, e.balance, e.held, e.other, e.metadata, pawl.micros(e.at) as at
from wallet.entries($1::text, $2::text, $3::integer, $4::bigint, $5::text, $6::text::timestamptz, $7::text::timestamptz) e
