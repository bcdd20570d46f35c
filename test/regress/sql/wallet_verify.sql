-- wallet_verify.sql - a seal that was removed is named, wherever it stood, and with it only rows that were under it.
-- Seals are verified in parts of 20: the 21st is the first of its part.
select count(*) from wallet.open(array(select 'o' || n from generate_series(1, 40) n));
do $$ begin for i in 1..48 loop perform wallet.seal(1); end loop; end $$;
select count(*) as seals, sum(rows) as rows from wallet.seal;
select * from wallet.verify();

create function verify_without (p_seal bigint) returns table (what text, which text, sentence text) language plpgsql as $$
begin
  set local session_replication_role = replica; -- as a superuser may
  delete from wallet.seal s where s.id = p_seal;
  return query select * from wallet.verify();
end
$$;
begin;
select * from verify_without(20);
rollback;
begin;
select * from verify_without(21);
rollback;
begin;
select * from verify_without(1);
rollback;
select * from wallet.verify();

-- A large ledger is verified in pieces of at most 20,000 transactions, sealed or not, and no number is between two pieces.
begin;
insert into wallet.txn (id, at, txn_id, kind, asset_id, wallet_id, amount, request)
  select 1000000 + n, now(), ('00000000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, 'hold', 1, 1, 1, '{}' from generate_series(1, 50000) n;
insert into wallet.hold (id, wallet_id, amount) select 1000000 + n, 1, 1 from generate_series(1, 45000) n where n <> 30000;
create temporary view pieces as
  select step, low, high, work, lag(high) over (partition by step order by low) as before from wallet.verify_plan() where step in ('tail', 'holds');
select step, max(work) as most, sum(work) as all, bool_and(coalesce(low = before, true)) as closed, max(high) as last
from pieces group by step order by step;
select count(*) filter (where step = 'tail') as tail, count(*) filter (where step = 'holds') as holds from pieces;
select step, count(*) from pieces p cross join lateral wallet.verify_step(p.step, p.low, p.high) v
where p.step = 'holds' and v.which = 'hold 1030000' group by step;
rollback;
