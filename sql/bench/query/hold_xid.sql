-- Give this transaction a number of its own, as one that writes has.
select pg_current_xact_id()::text as value
