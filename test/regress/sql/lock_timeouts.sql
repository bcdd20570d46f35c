-- How long functions wait for a lock, in place of what their caller says. Those of settles, extensions, sends and deadlines share a transaction with calls of
-- other domains: these wait as long.
select p.oid::regprocedure as function, substring(c from 'lock_timeout=(.*)') as lock_timeout
from pg_proc p cross join unnest(p.proconfig) c
where p.pronamespace in ('pawl'::regnamespace, 'wallet'::regnamespace, 'pgmq'::regnamespace) and c like 'lock_timeout=%'
order by p.oid::regprocedure::text collate "C";
