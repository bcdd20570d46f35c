-- One piece of a verification; a row per finding. $1 step, $2 low, $3 high
select v.what, v.which, v.sentence from wallet.verify_step($1::text, $2::bigint, $3::bigint) v
