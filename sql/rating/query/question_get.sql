-- What a button asks about.
select * from rating.question_get($1, $2)
