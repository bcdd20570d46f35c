-- prune_audit.sql - $1 most rows, $2 days to keep the audit. A transaction of its own, because it may lock the audit. Columns: value,
-- how many rows were deleted; none while retention waits.
select case when pawl.retention_ready() then pawl.prune_audit($1, make_interval(days => $2)) else 0 end as value
