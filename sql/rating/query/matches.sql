-- Matches of a group, newest first.
select * from rating.matches($1, $2, $3, $4)
