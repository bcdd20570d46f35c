-- Read what registrations need.
select * from rating.matches_read($1, $2, $3, $4, $5, $6)
