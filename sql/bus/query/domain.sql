-- The number of a domain, which is made if it is new.
-- $1 name
select pawl.domain_id($1::text)::bigint as value
