-- The id of a key of the role that is connected. $1 the key
select pawl.key($1::text)::text as value
