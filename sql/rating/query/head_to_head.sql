-- Two players against each other.
select * from rating.head_to_head($1, $2, $3)
