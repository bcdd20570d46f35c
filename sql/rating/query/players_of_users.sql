-- Players by outside id.
select * from rating.players_of_users($1, $2)
