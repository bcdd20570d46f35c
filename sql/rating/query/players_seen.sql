-- Remember who was seen in a message.
select * from rating.players_seen($1, to_timestamp($2), $3, $4, $5, $6::boolean[], $7::boolean[])
