-- The versions that an undo may change.
select * from rating.undo_versions($1, $2)
