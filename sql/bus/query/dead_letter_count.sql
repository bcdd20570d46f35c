-- How many are unresolved: one bigint, from the index of open letters.
select count(*)
from pawl.failed_operations
where status <> 'resolved'
