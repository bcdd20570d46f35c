-- Does a later edit of the same message wait: $1 bot, $2 command, $3 message
select pawl.telegram_superseded($1::bigint, $2::bigint, $3::bigint)::integer::bigint as value
