-- One migrator at a time in this database, until the transaction ends. The key is "pawl" in ASCII, and 1.
-- One bigint: 1 the lock was taken, 0 another session has it. Polling is better than waiting: a waiter would hold a connection, and its
-- timeout could not be distinguished from a server that does not answer.
select pg_try_advisory_xact_lock(x'7061776c'::integer, 1)::integer::bigint as value
