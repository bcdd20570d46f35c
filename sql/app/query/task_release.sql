-- task_release.sql - $1 holder. Columns: is_released.
select true as is_released from pawl.task_release($1::text::uuid)
