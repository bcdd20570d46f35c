-- One note for each domain that has work, in a transaction of its own.
-- $1 channel, $2 domains
select pg_notify($1::text, d.name)::text as note
from unnest($2::text[]) d (name)
