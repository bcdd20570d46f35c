-- Write the ratings after an undo.
select rating.undo_end($1, $2, $3, $4, $5, $6, $7, $8, $9::double precision[], $10::double precision[], $11::double precision[])
