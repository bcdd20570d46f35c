-- Mark a match as undone.
select rating.undo_begin($1, $2)
