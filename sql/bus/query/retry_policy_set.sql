-- retry_policy_set.sql - $1 domain, $2 type or null for the domain's own, $3 delays in ms, $4 hold or release; both null remove it.
select pawl.retry_policy_set($1::text, $2::text, $3::bigint[], $4::text)
