-- wallet_plan.sql - a session keeps the plans it made when the ledger was small. They must not read all of a ledger that has
-- grown since: the rows that a call fetches are those of its own wallets and transactions, however many others there are.
-- Plans are made anew when statistics change, so none are gathered after the first calls.
alter table wallet.wallet set (autovacuum_enabled = off);
alter table wallet.txn set (autovacuum_enabled = off);
alter table wallet.entry set (autovacuum_enabled = off);
alter table wallet.hold set (autovacuum_enabled = off);
create function k(n integer) returns uuid language sql as $$ select lpad(n::text, 32, '0')::uuid $$;

-- One of each kind, a repeat, refusals, legs, a lookup; p_n makes the keys new.
create function some_of_all (p_n integer) returns void language plpgsql as $$
begin
  perform wallet.post(array['topup', 'transfer', 'spend', 'hold', 'hold', 'hold'], array[k(p_n), k(p_n + 1), k(p_n + 2), k(p_n + 3), k(p_n + 4), k(p_n + 5)],
    array['o1', 'o1', 'o2', 'o1', 'o1', 'o1'], array[1000, 100, 10, 20, 20, 20]::bigint[], array[null, 'o2', null, null, null, null],
    p_requests => array[null, null, null, null, null, '{"expires_in_s": 1000}']::jsonb[]);
  perform wallet.post(array['topup', 'spend'], array[k(p_n), k(p_n + 6)], array['o1', 'o3'], array[1000, 5000]::bigint[]);
  perform wallet.post(array['capture', 'void', 'refund'], array[k(p_n + 7), k(p_n + 8), k(p_n + 9)], null, null,
    array['o3', null, null], p_refs => array[k(p_n + 3), k(p_n + 4), k(p_n + 1)]);
  perform wallet.post(array['multi', 'freeze', 'unfreeze'], array[k(p_n + 10), k(p_n + 11), k(p_n + 12)], array[null, 'o4', 'o4'], null,
    p_requests => array['{"legs": [{"owner": "o1", "amount": -5}, {"owner": "o4", "amount": 5}]}', null, null]::jsonb[]);
  perform wallet.get(array['o1', 'o2', '@system']);
  perform wallet.expire(100);
end
$$;

create function touched () returns table (name name, full_scans bigint, few_rows boolean) language sql as $$
  select relname, seq_scan, coalesce(idx_tup_fetch, 0) < 500
  from pg_stat_xact_user_tables where schemaname = 'wallet' and relname in ('wallet', 'txn', 'entry', 'hold')
  order by relname
$$;

select count(*) from wallet.open(array(select 'o' || n from generate_series(1, 4) n));
select some_of_all(100);
analyze wallet.wallet, wallet.txn, wallet.entry, wallet.hold;
select some_of_all(200);

select count(*) from wallet.open(array(select 'p' || n from generate_series(1, 3000) n));
select count(*) from wallet.post(array_fill('topup'::text, array[3000]), array(select k(10000 + n) from generate_series(1, 3000) n),
  array(select 'p' || n from generate_series(1, 3000) n), array_fill(10::bigint, array[3000]));
select count(*) from wallet.post(array_fill('hold'::text, array[3000]), array(select k(20000 + n) from generate_series(1, 3000) n),
  array(select 'p' || n from generate_series(1, 3000) n), array_fill(1::bigint, array[3000]));
select pg_stat_force_next_flush();
begin;
select some_of_all(300);
select * from touched();
commit;
