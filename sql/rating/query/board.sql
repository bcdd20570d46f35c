-- A page of the leaderboard.
select * from rating.board($1, $2, $3)
