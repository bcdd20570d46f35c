-- expire.sql - release holds whose time is over. $1 limit. Columns: count, next_ms (until the next one ends; at most an hour).
-- expire_next sees the rows as they were before: after a release it says a time that is over, and the caller asks again.
select wallet.expire($1::integer)::bigint as count,
       least(coalesce(ceil(extract(epoch from wallet.expire_next() - pawl.now()) * 1000), 3600000), 3600000)::bigint as next_ms
