-- How many matches follow one.
select rating.matches_after($1, $2, $3)
