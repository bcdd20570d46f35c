-- Open a wallet; told again when it is there. $1 owner, $2 asset, $3 floor, $4 metadata, $5 txn id or null, $6 milliseconds to wait
-- for a lock, null: as the session has it
with patience as materialized (
  select set_config('lock_timeout', coalesce($6, current_setting('lock_timeout')), true) as ms
)
select o.floor, o.is_new, o.differs, pawl.micros(o.at) as created_at,
       (select l.balance from wallet.get(array[o.owner], array[o.asset]) l) as balance_now
from patience
-- said in a way that has the patience set first
cross join lateral wallet.open(array[case when patience.ms is not null then $1::text end], array[$2::text], array[$3::bigint], array[$4::jsonb],
                               array[$5::uuid]) o
