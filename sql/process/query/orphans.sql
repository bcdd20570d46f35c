-- Cancel what processes that ended have sent. How many processes are left, as a number
select pawl.process_orphans_cancel()::text as value
