-- Would one more command be within the limits: $1 group, $2 author or 0, $3 its time in seconds or null, $4 commands of a player, $5 of the group.
select rating.usage_is_left($1::bigint, $2::bigint, to_timestamp($3::double precision), $4::integer, $5::integer) as value
