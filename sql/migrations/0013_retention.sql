-- 0013_retention.sql - resolved dead letters are found by age.
create index failed_operations_resolved on pawl.failed_operations ((coalesce(last_retry_at, created_at))) where status = 'resolved';
