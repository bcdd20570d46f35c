-- A message was sent: $1 bot, $2 chat, $3 message, $4 reference or null.
select pawl.telegram_delivered($1::bigint, $2::bigint, $3::bigint, $4::text)::text as value
