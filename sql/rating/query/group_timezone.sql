-- The time zone of a group: $1 group.
select rating.group_timezone($1::bigint) as value
