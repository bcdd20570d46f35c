-- All was well up to seal $1.
select wallet.verify_record($1::bigint)
