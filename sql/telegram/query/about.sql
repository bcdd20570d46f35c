-- The last message that is about something: $1 bot, $2 chat, $3 reference; 0: none.
select coalesce(pawl.telegram_about($1::bigint, $2::bigint, $3::text), 0) as value
