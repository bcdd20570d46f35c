-- Seal transactions that can no longer change; how many. $1 limit
select wallet.seal($1::integer)::bigint as value
