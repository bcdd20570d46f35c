-- How many messages wait: $1 bot, $2 the most to count
select pawl.telegram_waiting($1::bigint, $2::integer)::bigint as value
