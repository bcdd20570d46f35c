-- Several statements. Without `if not exists`, which would ask for the right to create it even where it already exists. Who creates the schema has the lock
-- of migrations (migration_lock.sql), so another one waits briefly.
set local lock_timeout = '100ms';
create schema pawl
