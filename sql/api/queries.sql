-- queries.sql - the statements that C sends for keys and kept answers: `-- name: NAME` begins sql_api_NAME.

-- name: answer_find
-- $1 key uuid, $2 hash of the request bytea. Rows: none, or the kept answer.
select status, body, is_same from pawl.answer_find($1, $2)

-- name: answer_keep
-- $1 key uuid, $2 hash of the request bytea, $3 status integer, $4 body text. One row: was it kept?
select pawl.answer_keep($1, $2, $3, $4) as kept

-- name: bound_batch
-- Whose is a batch? $1 batch id, $2 patterns of domains. Columns: value: own, other or none.
select pawl.bound_batch($1::uuid, $2::text[]) as value

-- name: bound_command
-- $1 command id, $2 domain or null, $3 what the domain begins with, $4 patterns. Rows: the domains within the binding that have a command of this id.
select c.domain as value from pawl.bound_command($1::uuid, $2::text, $4::text[]) c where starts_with(c.domain, $3::text)

-- name: bound_transaction
-- Is a transaction, or a hold, of owners within the binding? $1 txn id, $2 patterns. Columns: value.
select wallet.bound_txn($1::uuid, $2::text[]) as value

-- name: key_create
-- $1 name text, $2 hash bytea, $3 scopes text[], $4 ttl_ms bigint (null: never expires), $5 domains text[], $6 owners text[], null: not
-- bound, $7 operator, $8 reason. One row: id bigint, null when a live key has this name.
select pawl.key_create($1, $2, $3, $4, $5, $6, $7, $8) as id

-- name: key_find
-- $1 hashes in hexadecimal digits. A row for each that is the hash of a live key: ord of the hash, id, name, scopes,
-- left_us bigint: for how long it is still good, by the database's clock; null: for ever; domains and owners: its binding; is_idle: its use is to be
-- written.
select h.ord::integer as ord, k.id, k.name, k.scopes,
       case when k.expires_at is not null then greatest(k.expires_at - pawl.micros(pawl.now()), 1) end as left_us, k.domains, k.owners, k.is_idle
from unnest($1::text[]) with ordinality h (hex, ord)
cross join lateral pawl.key_find(decode(h.hex, 'hex')) k

-- name: key_list
-- $1 limit integer, $2 ids below, null: all. Newest first: the columns of Key.
select id, name, scopes, created_at, expires_at, revoked_at, domains, owners, created_by, used_at
from pawl.key_list($1, $2)

-- name: key_revoke
-- $1 id bigint, $2 name text, one of them null, $3 operator, $4 reason. At most one row: the columns of KeyName.
select id, name
from pawl.key_revoke($1, $2, $3, $4)

-- name: key_used
-- $1 ids bigint[]: these keys were used. One bigint: how many were written. A use that a crash loses is written again.
select pawl.key_used($1::bigint[]) as value
from (select set_config('synchronous_commit', 'off', true) offset 0) s

-- name: ready
-- Does the database answer? Columns: value.
select 1::bigint as value
