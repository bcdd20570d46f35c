-- $1 id bigint. At most one row: the columns of DeadLetter.
select id, operation_type, operation_key, pawl.dead_letter_shown(id) as operation_data, error_message, error_code, retry_count, status,
       pawl.micros(created_at) as created_at, pawl.micros(last_retry_at) as last_retry_at,
       pawl.dead_letter_retried_by(operation_type) as retried_by
from pawl.failed_operations
where id = $1
