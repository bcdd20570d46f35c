-- queries.sql - the statements that C sends for keys and kept answers: `-- name: NAME` begins sql_api_NAME.

-- name: answer_find
-- $1 key uuid, $2 hash of the request bytea. Rows: none, or the kept answer.
select status, body, is_same from pawl.answer_find($1, $2)

-- name: answer_keep
-- $1 key uuid, $2 hash of the request bytea, $3 status integer, $4 body text. One row: was it kept?
select pawl.answer_keep($1, $2, $3, $4) as kept

-- name: key_create
-- $1 name text, $2 hash bytea, $3 scopes text[], $4 ttl_ms bigint (null: never expires).
-- One row: id bigint, null when a live key has this name.
select pawl.key_create($1, $2, $3, $4) as id

-- name: key_find
-- $1 hashes in hexadecimal digits. A row for each that is the hash of a live key: ord of the hash, name, scopes,
-- left_us bigint: for how long it is still good, by the database's clock; null: for ever.
select h.ord::integer as ord, k.name, k.scopes,
       case when k.expires_at is not null then greatest(k.expires_at - pawl.micros(pawl.now()), 1) end as left_us
from unnest($1::text[]) with ordinality h (hex, ord)
cross join lateral pawl.key_find(decode(h.hex, 'hex')) k

-- name: key_list
-- $1 limit integer. Newest first: the columns of Key.
select id, name, scopes, created_at, expires_at, revoked_at
from pawl.key_list($1)

-- name: key_revoke
-- $1 id bigint, $2 name text, one of them null. At most one row: the columns of KeyName.
select id, name
from pawl.key_revoke($1, $2)

-- name: ready
-- Does the database answer? Columns: value.
select 1::bigint as value
