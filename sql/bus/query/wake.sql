-- One note for each domain that has work, in a transaction of its own. It writes nothing, and a lost notification is harmless: so its commit
-- waits neither for a flush nor for a standby.
-- $1 domains
select pawl.wake(d.name)::text as note
from (select set_config('synchronous_commit', 'off', true) offset 0) s
cross join unnest($1::text[]) d (name)
