-- Cancel what processes that ended have sent. How many of these commands and children are done, as a number
select pawl.process_orphans_cancel()::bigint
