-- Decide one transfer. Columns that repeat its arguments are null.
-- $1 txn id, $2 owner, $3 amount, $4 other, $5 asset or null, $6 request or null, $7 milliseconds to wait for a lock, null: as the
-- session has it
select p.ord, p.is_new, p.refusal, p.sentence, p.differs, case when p.differs is not null then p.kind end as kind,
       null::text as owner, null::text as other, null::text as asset, null::bigint as amount,
       p.balance_before, p.balance, p.held, p.available, p.version, p.balance_now, pawl.micros(p.at) as at
-- p_atomic is false: set_config never returns null, and arguments are evaluated before the call.
from wallet.post_transfer($1::uuid, $2::text, $3::bigint, $4::text, $5::text, $6::jsonb,
                          set_config('lock_timeout', coalesce($7, current_setting('lock_timeout')), true) is null) p
