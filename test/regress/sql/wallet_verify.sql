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
