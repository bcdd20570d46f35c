-- The unresolved ones. $1 type text (null: any), $2 before bigint, $3 limit integer.
-- A statement of its own, so that the index of open letters serves it. Newest first: the columns of DeadLetter.
select id, operation_type, operation_key, pawl.dead_letter_shown(id) as operation_data, error_message, error_code, retry_count, status,
       pawl.micros(created_at) as created_at, pawl.micros(last_retry_at) as last_retry_at,
       pawl.dead_letter_retried_by(operation_type) as retried_by
from pawl.failed_operations
where status <> 'resolved' and id < $2 and ($1::text is null or operation_type = $1)
order by id desc
limit $3
