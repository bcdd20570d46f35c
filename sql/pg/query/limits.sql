-- The time limits of the statement that follows in the same pipeline, in milliseconds. Up to the pipeline's sync all is one
-- transaction, so they end with it. set_config(), because `set local` outside a transaction block warns. The last column says which process
-- of the server runs them: see pg/conn_prepared.c.
select set_config('statement_timeout', $1, true), set_config('lock_timeout', $1, true), pg_backend_pid()
