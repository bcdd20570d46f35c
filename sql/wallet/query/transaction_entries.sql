-- What a transaction changed, as a JSON array. It never changes. $1 txn id
select (wallet.transaction($1::uuid) -> 'entries')::text as value
