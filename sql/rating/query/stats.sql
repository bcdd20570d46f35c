-- One player in numbers.
select * from rating.stats($1, $2)
