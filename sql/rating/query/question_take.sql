-- What a button asks about; it is answered by this.
select * from rating.question_take($1, $2, $3)
