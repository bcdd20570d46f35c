-- The group of a message, who was seen, who is meant, the limits.
select * from rating.turn_open($1, $2, $3, to_timestamp($4), $5, $6, $7, $8::boolean[], $9::boolean[], $10, $11, $12, $13)
