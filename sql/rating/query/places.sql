-- Places of players.
select * from rating.places($1, $2)
