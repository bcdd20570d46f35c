-- The message that a command of the outbox has sent: $1 bot, $2 command; 0: none
select coalesce(pawl.telegram_message($1::bigint, $2::text::uuid), 0)::bigint as value
