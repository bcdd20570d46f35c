-- The bot's username, as getMe said: $1 bot, $2 name.
select pawl.telegram_name($1::bigint, $2::text)::text as value
