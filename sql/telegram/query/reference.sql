-- What a message is about: $1 bot, $2 chat, $3 message.
select pawl.telegram_reference($1::bigint, $2::bigint, $3::bigint) as value
