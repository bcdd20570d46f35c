-- $1 id bigint, $2 name text, one of them null. At most one row: the columns of KeyName.
select id, name
from pawl.key_revoke($1, $2)
