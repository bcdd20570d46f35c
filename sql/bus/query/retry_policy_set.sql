-- retry_policy_set.sql - $1 domain, $2 type or null for the domain's own, $3 delays in ms; null removes it.
select pawl.retry_policy_set($1::text, $2::text, $3::bigint[])
