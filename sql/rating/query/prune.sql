-- Delete old rows of groups: $1 how many of each kind at most. How many were deleted.
select rating.prune($1::integer) as value
