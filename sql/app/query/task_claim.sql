-- task_claim.sql - $1 names, $2 holder, $3 milliseconds. A row per name, in order: is_held (its lease is ours); in each row the
-- same letters_open, letters_failed (dead letters for the metrics; failed: their tries have run out), ledger_ahead_s (the newest
-- transactions of the ledger, ahead of the database's clock), retention_jump_s (retention waits because of such a jump), and the sums of pawl.tally_sum() over all processes.
select c.name is not null as is_held, l.letters_open, l.letters_failed, a.ledger_ahead_s, a.retention_jump_s,
       t.handlers, t.handlers_failed, t.rate_limited
from unnest($1::text[]) with ordinality u (name, ord)
left join pawl.task_claim($1::text[], $2::text::uuid, $3::integer) c (name) on c.name = u.name
cross join (select count(*) as letters_open, count(*) filter (where f.status = 'failed') as letters_failed
            from pawl.failed_operations f where f.status <> 'resolved') l
cross join (select wallet.clock_ahead() as ledger_ahead_s, pawl.retention_jump_s() as retention_jump_s) a
cross join pawl.tally_sum() t
order by u.ord
