-- Do up to $1 of what is due by rows that are attached to commands. next_ms: when something is due next, at most $2; 0: there is more to do.
-- wake: domains in which commands were queued by it, joined by commas
select d.next_ms, nullif(current_setting('pawl.wake', true), '') as wake from pawl.attached_due($1::integer, $2::integer) d (next_ms)
