-- Move commands whose payload cannot be delivered to the troubleshooting queue; one bigint: how many.
-- $1 domain, $2 how many to read of each priority, $3 types or null
select pawl.claim_isolate($1::integer, $2::integer, $3::text[])::bigint as value
