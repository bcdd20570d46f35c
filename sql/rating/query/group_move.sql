-- A group has a new outside id.
select rating.group_move($1, $2)
