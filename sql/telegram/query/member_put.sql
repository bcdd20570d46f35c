-- Keep what the server said about a member: $1 bot, $2 chat, $3 user, $4 status.
select pawl.telegram_member_put($1::bigint, $2::bigint, $3::bigint, $4::text)::text as value
