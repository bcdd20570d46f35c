-- One more command of a player in a group; how many there were in the last minute.
select u.by_player, u.by_group from rating.usage_add(array[$1::bigint], array[$2::bigint]) u
