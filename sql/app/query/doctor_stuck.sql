-- doctor_stuck.sql - rows that wait for a monitor or an operator.
-- Columns: expired (dead letters whose lease ran out more than a minute ago), failed.
select count(*) filter (where status = 'retrying' and lease_until < pawl.now() - interval '1 minute') as expired,
       count(*) filter (where status = 'failed') as failed
from pawl.failed_operations
where status in ('retrying', 'failed')
