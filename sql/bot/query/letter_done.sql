-- Has the update of a dead letter ended: $1 its data.
select pawl.bot_letter_done(($1::jsonb->>'bot_id')::bigint, ($1::jsonb->>'command_id')::uuid)::integer::bigint as value
