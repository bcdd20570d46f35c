-- Players by username.
select * from rating.players_named($1, $2)
