-- Read what a registration needs.
select * from rating.match_read($1, $2, $3, $4, $5, $6)
