-- A match that is asked back.
select rating.question_put($1, $2, $3, $4, $5, $6, $7)
