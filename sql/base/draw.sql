-- draw.sql - from when on is it sure that no smaller number of a sequence will appear any more?
--
-- Numbers are drawn in order and committed in any order. Whoever draws one says so first (pawl.drawing), with a shared lock
-- that nobody ever takes alone, so it keeps nobody waiting; it falls when its transaction has ended, after its rows can be seen. So:
-- read the last number, take a transaction id, and once nobody who draws has an older id (pawl.drawing_oldest), every number up to
-- that one is decided and a new snapshot sees it. Transactions that never drew do not count, however long they stay open.
-- p_line: 2 places in line of the bus, 3 transactions of the ledger.

create or replace function pawl.drawing (p_line integer)
  returns void
  language plpgsql
as $$
begin
  perform pg_current_xact_id(), pg_advisory_xact_lock_shared(x'7061776c'::integer, p_line);
end
$$;

-- The oldest transaction that may have drawn a number and has not ended; our own if there is none.
create or replace function pawl.drawing_oldest (p_line integer)
  returns bigint
  language plpgsql
as $$
declare
  v_own bigint := pg_current_xact_id()::text::bigint;
begin
  return (
    with held as materialized (
      select l.locktype, l.virtualtransaction, l.transactionid, l.database, l.classid, l.objid, l.mode from pg_locks l where l.granted
    )
    -- Transaction ids of locks have 32 bits: ours tells the rest.
    select coalesce(min(v_own - ((v_own - t.transactionid::text::bigint) & 4294967295)), v_own)
    from held d join held t on t.virtualtransaction = d.virtualtransaction
    where d.locktype = 'advisory' and d.classid = x'7061776c'::integer::oid and d.objid = p_line::oid
      and d.database = (select b.oid from pg_database b where b.datname = current_database())
      and t.locktype = 'transactionid' and t.mode = 'ExclusiveLock');
end
$$;
