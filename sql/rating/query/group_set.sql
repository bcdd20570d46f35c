-- Change one setting of a group.
select rating.group_set($1, $2, $3)
