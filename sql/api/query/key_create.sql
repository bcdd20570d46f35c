-- $1 name text, $2 hash bytea, $3 scopes text[], $4 ttl_ms bigint (null: never expires).
-- One row: id bigint, null when a live key has this name.
select pawl.key_create($1, $2, $3, $4) as id
