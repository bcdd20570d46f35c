-- wallet_asset.sql - failed openings use up no asset ids: the ids are 16 bits wide, so a client could otherwise end them.
create function k(n integer) returns uuid language sql as $$ select lpad(n::text, 32, '0')::uuid $$;
\set VERBOSITY terse
select owner, asset, is_new from wallet.open(array['ann'], array['EUR'], p_txn_ids => array[k(1)]);

-- 40,000 openings that are rolled back: by the caller, and because the key was used before.
do $$
declare
  v_refused integer := 0;
begin
  for n in 1 .. 40000 loop
    begin
      if n % 20000 = 0 then
        perform wallet.open(array['bob'], array['A' || n], p_txn_ids => array[k(1)]);
      else
        perform nextval(pg_get_serial_sequence('wallet.asset', 'id'));
        raise exception using errcode = 'QW002';
      end if;
    exception when sqlstate 'QW002' then
      v_refused := v_refused + 1;
    end;
  end loop;
  raise notice '% refused', v_refused;
end
$$;
select owner, asset, is_new from wallet.open(array['ann', 'ann', 'bob'], array['USD', 'CHF', 'EUR']);
select count(*), count(distinct id), bool_and(id > 0) from wallet.asset;

-- An id that is in use is passed over.
select setval(pg_get_serial_sequence('wallet.asset', 'id'), (select min(id) from wallet.asset), false) > 0;
select asset, is_new from wallet.open(array['ann'], array['JPY']);
select count(*), count(distinct id) from wallet.asset;

-- All of them are in use.
insert into wallet.asset (id, code) overriding system value
select n, 'X' || n from generate_series(1, 32767) n on conflict do nothing;
select * from wallet.open(array['ann'], array['GBP']);
select asset, is_new from wallet.open(array['cid'], array['EUR']);
