-- Bytes of WAL the server has written so far, for all of its databases.
select (pg_current_wal_insert_lsn() - pg_lsn '0/0')::bigint as value
