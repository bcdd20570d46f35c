-- The update was done, or given up: $1 bot, $2 update, $3 why it was given up, or null.
select pawl.bot_letter_end($1::bigint, $2::bigint, $3::text)::text as value
