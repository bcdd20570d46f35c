-- batch_seal.sql - $1 batch id. wake: domains in which commands were queued by it, joined by commas.
select nullif(current_setting('pawl.wake', true), '') as wake from pawl.batch_seal($1)
