-- Users whose names others in their groups have too.
select * from rating.namesakes($1, $2)
