-- One more command of a player in a group at a time in seconds, or now; how many there were in the minute before.
select u.by_player, u.by_group from rating.usage_add(array[$1::bigint], array[$2::bigint], array[to_timestamp($3::double precision)], $4) u
