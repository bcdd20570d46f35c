-- Open a wallet; told again when it is there. $1 owner, $2 asset, $3 floor, $4 metadata, $5 txn id or null
select o.floor, o.is_new, o.differs, pawl.micros(o.at) as created_at,
       (select l.balance from wallet.look(array[o.owner], array[o.asset]) l) as balance_now
from wallet.open(array[$1::text], array[$2::text], array[$3::bigint], array[$4::jsonb], array[$5::uuid]) o
