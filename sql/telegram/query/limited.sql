-- The server answered 429: $1 bot, $2 chat, $3 the time in ms that it said, 0: none. The time to wait in ms.
select pawl.telegram_limited($1::bigint, $2::bigint, $3::bigint) as value
