-- Delete old rows: $1 days, $2 limit; how many
select pawl.telegram_prune($1::integer, $2::integer) as value
