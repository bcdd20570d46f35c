-- All of them. $1 status text (null: any), $2 type text (null: any), $3 before bigint, $4 limit integer.
-- Newest first, ids below before: the columns of DeadLetter.
select id, operation_type, operation_key, pawl.dead_letter_shown(id) as operation_data, error_message, error_code, retry_count, status,
       pawl.micros(created_at) as created_at, pawl.micros(last_retry_at) as last_retry_at,
       pawl.dead_letter_retried_by(operation_type) as retried_by
from pawl.failed_operations
where id < $3 and ($1::text is null or status = $1) and ($2::text is null or operation_type = $2)
order by id desc
limit $4
