-- Give the lease back: $1 bot, $2 holder.
select pawl.telegram_lease_release($1::bigint, $2::text::uuid)::text as value
