-- $1 hash bytea. At most one row: id bigint, name, scopes text, left_us bigint: for how long it is still good, by the database's
-- clock; null: for ever.
select id, name, scopes, case when expires_at is not null then greatest(expires_at - pawl.micros(pawl.now()), 1) end as left_us
from pawl.key_find($1)
