-- 0005_allocation_lock.sql - tables whose lock says that a transaction has allocated sequence values: see base/draw.sql.
-- They have no columns and no rows, and nothing is ever granted on them.

create table pawl.command_allocation ();
create table wallet.txn_allocation ();
