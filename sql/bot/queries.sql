-- queries.sql - the statements that C sends for the bot: `-- name: NAME` begins sql_bot_NAME.

-- name: letter_done
-- Has the update of a dead letter ended: $1 its data.
select pawl.bot_letter_done(($1::jsonb->>'bot_id')::bigint,
                            ($1::jsonb->>'command_id')::uuid)::integer::bigint as value

-- name: letter_end
-- The update was done, or given up: $1 bot, $2 update, $3 why it was given up, or null.
select pawl.bot_letter_end($1::bigint, $2::bigint, $3::text)::text as value

-- name: letter_keep
-- Keep a dead letter of an update: $1 bot, $2 update, $3 command, $4 type, $5 data, $6 message, $7 code. Does it wait?
select pawl.bot_letter_keep($1::bigint, $2::bigint, $3::text::uuid, $4::text, $5::jsonb, $6::text,
                            $7::text)::integer::bigint as value
