-- The file of a message: $1 bot, $2 command; null: it has none of its own.
select pawl.telegram_file($1::bigint, $2::text::uuid) as value
