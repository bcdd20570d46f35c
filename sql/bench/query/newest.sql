-- The number of the newest command, 0 when there is none.
select coalesce(max(id), 0) as value from pawl.command
