-- Open a wallet, or read the existing one. $1 owner, $2 asset, $3 floor, $4 metadata, $5 txn id or null, $6 milliseconds to wait
-- for a lock, null: as the session has it
select o.floor, o.is_new, o.differs, pawl.micros(o.at) as created_at,
       (select l.balance from wallet.get(array[o.owner], array[o.asset]) l) as balance_now
-- set_config never returns null, and arguments are evaluated before the call.
from wallet.open(array[case when set_config('lock_timeout', coalesce($6, current_setting('lock_timeout')), true) is not null then $1::text end],
                 array[$2::text], array[$3::bigint], array[$4::jsonb], array[$5::uuid]) o
