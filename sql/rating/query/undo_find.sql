-- What a key has undone.
select * from rating.undo_find($1)
