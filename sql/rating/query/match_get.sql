-- One match, or the last one.
select * from rating.match_get($1, $2)
