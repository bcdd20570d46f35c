-- Queue messages: $1 bot, $2 ids, $3 chats, $4 types, $5 payloads, $6 how many may be queued; how many were refused
select pawl.telegram_put($1::bigint, $2::uuid[], $3::bigint[], $4::text[], $5::jsonb[], $6::integer)::bigint as value
