-- allocation.sql - the allocation lock: up to which value of a sequence is every transaction that allocated one
-- decided?
--
-- Sequence values are allocated in order and committed in any order. A transaction takes the sequence's allocation lock
-- before it allocates (pawl.command_allocation_lock, wallet.txn_allocation_lock) and holds it until it has ended and
-- its rows can be seen. So: read the last value, take a transaction id, and once no holder of the lock has an older id
-- (pawl.allocation_oldest), every value up to that one is decided and a new snapshot sees it. Transactions that never
-- allocated do not count, however long they stay open.
--
-- The lock is ROW SHARE on an empty table of its own. That mode conflicts with EXCLUSIVE and ACCESS EXCLUSIVE only,
-- which nothing here takes and no other role may take, so holders never wait, neither for each other nor for vacuum.
-- Only the tables' owner may take it, so callers are security definer functions; an advisory lock could be held by any
-- role.

-- Before a value of pawl.command_seq is taken: positions of the bus.
create or replace function pawl.command_allocation_lock ()
  returns void
  language plpgsql
as $$
begin
  perform pg_current_xact_id(); -- before the lock: a holder without an id would not be seen
  lock table pawl.command_allocation in row share mode;
end
$$;

-- Before a value of wallet.txn_seq is taken: numbers of the ledger's transactions.
create or replace function wallet.txn_allocation_lock ()
  returns void
  language plpgsql
as $$
begin
  perform pg_current_xact_id();
  lock table wallet.txn_allocation in row share mode;
end
$$;

-- The full transaction id of one that has 32 bits, as in pg_locks: ids in use at the same time are less than 2^31
-- apart, so it is the one that is nearest to p_near, older or younger.
create or replace function pawl.xid_full (p_xid xid, p_near bigint)
  returns bigint
  language sql immutable
as $$
  select p_near + ((((p_xid::text::bigint - p_near) & 4294967295) + 2147483648) & 4294967295) - 2147483648
$$;

-- A transaction id above that of every transaction that has taken an allocation lock so far. Only an id that is
-- assigned now is: the one that the caller's transaction has already may be older than a transaction that has allocated
-- since. Then a subtransaction that is rolled back immediately gets one.
create or replace function pawl.allocation_bound ()
  returns bigint
  language plpgsql
as $$
declare
  v_xid xid;
begin
  if pg_current_xact_id_if_assigned() is null then
    return pg_current_xact_id()::text::bigint;
  end if;
  begin
    insert into pawl.command_allocation default values returning xmin into v_xid;
    raise exception using errcode = 'PWXID';
  exception when sqlstate 'PWXID' then
    return pawl.xid_full(v_xid, pg_current_xact_id()::text::bigint);
  end;
end
$$;

-- The id of the oldest other transaction that holds the allocation lock, which is on p_table; p_bound if none is older.
-- What our own transaction has allocated it can see.
create or replace function pawl.allocation_oldest (p_table regclass, p_bound bigint)
  returns bigint
  language plpgsql
as $$
begin
  return (
    with held as materialized (
      select l.locktype, l.virtualtransaction, l.transactionid, l.database, l.relation, l.mode, l.pid
      from pg_locks l where l.granted
    )
    select least(min(pawl.xid_full(t.transactionid, p_bound)), p_bound)
    from held d join held t on t.virtualtransaction = d.virtualtransaction
    where d.locktype = 'relation' and d.relation = p_table and d.mode = 'RowShareLock'
      and d.pid is distinct from pg_backend_pid() -- that of a prepared transaction is null
      and d.database = (select b.oid from pg_database b where b.datname = current_database())
      and t.locktype = 'transactionid' and t.mode = 'ExclusiveLock');
end
$$;
