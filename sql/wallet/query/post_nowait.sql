-- Decide operations, in order; a row for each. Columns that repeat an operation's own arguments are null. Those on wallets that another
-- transaction has locked have the refusal "busy" and the owner of that wallet.
-- $1 kinds, $2 txn ids, $3 owners, $4 amounts as text, because some have none, $5 others, $6 assets, $7 refs, $8 requests;
-- arrays from $5 on may be null; $9 milliseconds to wait for a lock, null: as the session has it
select p.ord, p.is_new, p.refusal, p.sentence, p.differs, case when p.differs is not null then p.kind end as kind,
       case when n.is_set or p.refusal = 'busy' then p.owner end as owner, case when n.is_set then p.other end as other,
       case when n.is_set then p.asset end as asset, case when n.is_set then p.amount end as amount,
       p.balance_before, p.balance, p.held, p.available, p.version, p.balance_now, pawl.micros(p.at) as at
-- set_config never returns null, and arguments are evaluated before the call.
from wallet.post_nowait(case when set_config('lock_timeout', coalesce($9, current_setting('lock_timeout')), true) is not null then $1::text[] end,
                        $2::uuid[], $3::text[], $4::text::bigint[], $5::text[], $6::text[], $7::uuid[], $8::jsonb[]) p
cross join lateral (select p.kind not in ('topup', 'spend', 'transfer', 'hold') as is_set) n
