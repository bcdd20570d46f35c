-- isolate.sql - which failures of one row may be set aside so that the rows beside it go on.

-- True: the failure is not about the row. The connection, the server's resources or another transaction failed, and the
-- whole transaction has to be run again. False: the row itself fails, and a bulk step handles it apart from its
-- neighbours.
create or replace function pawl.is_transient (p_sqlstate text)
  returns boolean
  language sql immutable
as $$
  select pg_catalog.left(p_sqlstate, 2) in ('08', '40', '53', '57', '58')
$$;
