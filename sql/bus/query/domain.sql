-- The number of a domain; 0: nothing was ever sent there.
-- $1 name
select coalesce(pawl.domain_find($1::text), 0)::bigint as value
