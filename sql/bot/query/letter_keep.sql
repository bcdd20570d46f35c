-- Keep a dead letter of an update: $1 bot, $2 update, $3 command, $4 type, $5 data, $6 message, $7 code. Does it wait?
select pawl.bot_letter_keep($1::bigint, $2::bigint, $3::text::uuid, $4::text, $5::jsonb, $6::text, $7::text)::integer::bigint as value
