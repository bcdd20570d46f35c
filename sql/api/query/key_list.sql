-- $1 limit integer. Newest first: the columns of Key.
select id, name, scopes, created_at, expires_at, revoked_at
from pawl.key_list($1)
