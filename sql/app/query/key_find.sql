-- $1 hash bytea. At most one row: id bigint, name, scopes text, expires_at bigint.
select id, name, scopes, expires_at
from pawl.key_find($1)
