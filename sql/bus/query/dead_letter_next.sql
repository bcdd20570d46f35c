-- When the first of the pending letters of these types is due, in ms from now, at most a day. $1 types text[]
select least(coalesce(ceil(extract(epoch from min(d.next_retry_at) - pawl.now()) * 1000), 86400000), 86400000)::bigint as value
from unnest($1::text[]) t (type)
cross join lateral (
  select f.next_retry_at from pawl.failed_operations f
  where f.status = 'pending' and f.operation_type = t.type order by f.next_retry_at limit 1) d
