-- One note for each domain that has work, in a transaction of its own.
-- $1 domains
select pawl.wake(d.name)::text as note
from unnest($1::text[]) d (name)
