-- Where we are and what a commit means there: figures without it say nothing.
select current_database()::text as database, split_part(current_setting('server_version'), ' ', 1) as version,
       current_setting('synchronous_commit') as synchronous_commit, current_setting('fsync') as fsync
