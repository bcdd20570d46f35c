-- A group has become a supergroup: $1 bot, $2 old, $3 new chat.
select pawl.telegram_moved($1::bigint, $2::bigint, $3::bigint)::text as value
