-- Renew or take the lease of a bot: $1 bot, $2 holder, $3 milliseconds, $4 most messages to count. Columns: is_held, username, waiting.
select l.is_held, l.username, l.waiting from pawl.telegram_lease($1::bigint, $2::text::uuid, $3::integer, $4::integer) l
