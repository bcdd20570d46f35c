-- Matches of a player, newest first.
select * from rating.player_history($1, $2, $3, $4)
