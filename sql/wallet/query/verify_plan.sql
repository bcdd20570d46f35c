-- What there is to verify, in pieces. $1 incremental
select p.step, p.low, p.high, p.work from wallet.verify_plan($1::boolean) p
