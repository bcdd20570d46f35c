-- One transaction as JSON; null: there is none. $1 txn id
select wallet.transaction($1::uuid)::text as value
