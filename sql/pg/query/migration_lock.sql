-- One migrator at a time in this database, until the transaction ends. A lock that only the owner may take: any login could hold an advisory lock.
-- Readers of the table do not wait for it. Polling is better than waiting: a waiter would hold a connection, and its timeout could not be
-- distinguished from a server that does not answer.
lock table pawl.migration in share row exclusive mode nowait
