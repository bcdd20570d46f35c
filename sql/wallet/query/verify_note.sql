-- All was well up to seal $1.
select wallet.verify_note($1::bigint)
