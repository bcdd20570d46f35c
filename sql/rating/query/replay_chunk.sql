-- Matches with the states of their players, in order.
select * from rating.replay_chunk($1, $2, $3)
