-- Commit, and leave nothing in the session that code which is not pawl's may have put there. As `discard all`, which a list of statements
-- may not contain, but for plans. One message, so that it costs no round trip and a pooler runs all of it on the same connection.
commit; close all; reset session authorization; reset role; reset all; deallocate all; unlisten *; select pg_catalog.pg_advisory_unlock_all(); discard temp; discard sequences
