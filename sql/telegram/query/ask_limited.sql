-- The server answered 429 to a question: $1 bot, $2 the time in ms that it said, 0: none. The time to wait in ms.
select pawl.telegram_ask_limited($1::bigint, $2::bigint) as value
