-- The allocation lock: who holds it, who may, and transaction ids beyond 32 bits.
\set VERBOSITY terse
-- pg_locks shows the lower 32 bits. The full id is the nearest one, older or younger, on both sides of 2^31 and 2^32.
select n.near, n.xid, pawl.xid_full(n.xid::text::xid, n.near) as full, pawl.xid_full(n.xid::text::xid, n.near) - n.near as distance
from (values
  (1000, 999), (1000, 1000), (1000, 1001),
  (2147483647, 2147483648), (2147483648, 2147483647), (2147483650, 3), (3, 2147483650),
  (4294967295, 4294967294), (4294967295, 3), (4294967296, 4294967295), (4294967299, 4294967290), (4294967299, 5),
  (6442450944, 2147483648), (6442450944, 2147483647), (6442450944, 2147483649),
  (12884901889, 4294967295), (12884901889, 7)
) n (near, xid);

-- It is held until the end of the transaction, once for each sequence; a rolled back part of it releases its own.
create view held as
  select l.relation::regclass, l.mode, l.granted from pg_locks l
  where l.relation in ('pawl.command_allocation'::regclass, 'wallet.txn_allocation'::regclass) and l.pid = pg_backend_pid()
  order by 1;
begin;
savepoint before;
select s.is_new from pawl.send('shop', array['t'], array['1']::jsonb[]) s;
select * from held;
rollback to before;
select * from held;
select s.is_new from pawl.send('shop', array['t'], array['1']::jsonb[]) s;
select o.is_new from wallet.open(array['ann']) o;
select * from held;
select pawl.allocation_oldest('pawl.command_allocation', 1e15::bigint) = 1e15::bigint as none_of_the_bus, pawl.allocation_oldest('wallet.txn_allocation', 1e15::bigint) = 1e15::bigint as none_of_the_ledger;
commit;
select * from held;

-- Only the owner's functions reach it: no role of ours may lock the tables in any mode.
select r.rolname, t.name, p.privilege
from pg_roles r,
     (values ('pawl.command_allocation'), ('wallet.txn_allocation')) t (name),
     (values ('select'), ('insert'), ('update'), ('delete'), ('truncate')) p (privilege)
where r.rolname like 'pawl\_%' and has_table_privilege(r.rolname, t.name, p.privilege);

-- What is decided is proved with a transaction id that is assigned after the last value was read. The id that the caller has already
-- could be older than a transaction that has allocated since: seals would cover rows that appear later.
select pg_current_xact_id_if_assigned() is null as has_none, pawl.allocation_bound() = pg_current_xact_id()::text::bigint as bound_is_own;
begin;
select pg_current_xact_id() is not null as has_one;
select pawl.allocation_bound() > pg_current_xact_id()::text::bigint as bound_is_new;
select b.one < b.two as and_grows from (select pawl.allocation_bound() as one, pawl.allocation_bound() as two offset 0) b;
rollback;
select count(*) from pawl.command_allocation;
