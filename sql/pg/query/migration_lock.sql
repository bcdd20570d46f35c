-- One migrator at a time in this database, until the transaction ends. The key is "pawl" in ASCII, and 1.
-- One bigint: 1 it is ours, 0 another has it. Asking beats waiting: a waiter would hold a connection, and its time-out
-- could not be told from a server that does not answer.
select pg_try_advisory_xact_lock(x'7061776c'::integer, 1)::integer::bigint as value
