-- The time limits of the statement that follows in the same pipeline, in milliseconds, and where it looks for names: pg/tx.c says why. Up to the
-- pipeline's sync all is one transaction, so they end with it. set_config(), because `set local` outside a transaction block warns. The last column
-- says which process of the server runs them: see pg/conn_prepared.c.
select pg_catalog.set_config('statement_timeout', $1, true), pg_catalog.set_config('lock_timeout', $1, true),
       pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true), pg_catalog.pg_backend_pid()
