-- See commit_reset.sql: a rollback keeps advisory locks of the session.
rollback; close all; reset session authorization; reset role; reset all; deallocate all; unlisten *; select pg_catalog.pg_advisory_unlock_all(); discard temp; discard sequences
