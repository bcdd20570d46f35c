-- Decide operations, in order; a row for each. Columns that repeat an operation's own arguments are null.
-- $1 kinds, $2 txn ids, $3 owners, $4 amounts as text, because some have none, $5 others, $6 assets, $7 refs, $8 requests;
-- arrays from $5 on may be null; $9 milliseconds to wait for a lock, null: as the session has it
select p.ord, p.is_new, p.refusal, p.sentence, p.differs, case when p.differs is not null then p.kind end as kind,
       case when n.is_set then p.owner end as owner, case when n.is_set then p.other end as other,
       case when n.is_set then p.asset end as asset, case when n.is_set then p.amount end as amount,
       p.balance_before, p.balance, p.held, p.available, p.version, p.balance_now, pawl.micros(p.at) as at
-- p_atomic is false: set_config never returns null, and arguments are evaluated before the call.
from wallet.post($1::text[], $2::uuid[], $3::text[], $4::text::bigint[], $5::text[], $6::text[], $7::uuid[], $8::jsonb[],
                 set_config('lock_timeout', coalesce($9, current_setting('lock_timeout')), true) is null) p
cross join lateral (select p.kind not in ('topup', 'spend', 'transfer', 'hold') as is_set) n
