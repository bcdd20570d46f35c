-- expire.sql - release holds whose time is over. $1 limit, $2 where to start, in microseconds; null: at the first. Columns: count, next_ms
-- (until the next one ends; at most an hour), low (where the next call may start).
select e.released::bigint as count,
       least(coalesce(ceil(extract(epoch from e.next_at - pawl.now()) * 1000), 3600000), 3600000)::bigint as next_ms,
       pawl.micros(e.low) as low
from wallet.expire_from($1::integer, timestamptz 'epoch' + $2::bigint * interval '1 us') e
