-- Release holds whose time is over; how many. $1 limit
select wallet.expire($1::integer)::bigint as value
