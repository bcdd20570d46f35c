-- The status of a member has changed: $1 bot, $2 chat, $3 user.
select pawl.telegram_member_forget($1::bigint, $2::bigint, $3::bigint)::text as value
