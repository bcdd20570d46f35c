-- Players by id.
select * from rating.players_get($1, $2)
