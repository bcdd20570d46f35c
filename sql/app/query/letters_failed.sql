-- letters_failed.sql - dead letters whose tries have run out: they wait for a person. Columns: value.
select count(*) as value
from pawl.failed_operations
where status = 'failed'
