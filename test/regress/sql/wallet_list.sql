-- wallet_list.sql - lists of wallets, holds, transactions and batches: what matches, newest first, in pages that read a bounded number of rows.
\set VERBOSITY terse
create function pg_temp.opened (p_prefix text, p_from integer, p_count integer, p_asset text) returns void language sql as $$
  select from wallet.open((select array_agg(p_prefix || i) from generate_series(p_from, p_count) i),
                          array_fill(p_asset, array[p_count - p_from + 1]), null, null, null)
$$;
select pg_temp.opened('eu/', 1, 300, 'CREDIT');
select pg_temp.opened('us/', 1, 300, 'CREDIT');
select pg_temp.opened('us_', 1, 3, 'CREDIT');
select pg_temp.opened('eu/', 1, 2, 'GOLD');
select count(*) from wallet.post(array_fill('topup'::text, '{100}'), (select array_agg(gen_random_uuid()) from generate_series(1, 100)),
  (select array_agg('eu/' || i) from generate_series(1, 100) i), array_fill(50::bigint, '{100}'));
select count(*) from wallet.post(array_fill('spend'::text, '{40}'), (select array_agg(gen_random_uuid()) from generate_series(1, 40)),
  (select array_agg('eu/' || i) from generate_series(81, 120) i), array_fill(20::bigint, '{40}'));
select count(*) from wallet.post(array_fill('hold'::text, '{30}'), (select array_agg(gen_random_uuid()) from generate_series(1, 30)),
  (select array_agg('eu/' || i) from generate_series(1, 30) i), array_fill(10::bigint, '{30}'));
select count(*) from wallet.post(array_fill('void'::text, '{10}'), (select array_agg(gen_random_uuid()) from generate_series(1, 10)),
  null, null, p_refs => (select array_agg(t.txn_id) from (select t.txn_id from wallet.txn t where t.kind = 'hold' order by t.id limit 10) t));
select count(*) from wallet.post(array['transfer'], array[gen_random_uuid()], array['eu/1'], array[5::bigint], array['us_1']);

-- Page by page.
create function pg_temp.pages (p_what text, p_filter text, p_limit integer, p_rows integer, out ids bigint[], out pages integer)
language plpgsql as $$
declare
  v_row record;
  v_before bigint;
  v_in_page integer;
  v_more boolean := true;
begin
  ids := '{}';
  pages := 0;
  while v_more loop
    v_in_page := 0;
    v_more := false;
    for v_row in execute format('select l.id, l.searched_to from %s(%s p_before => $1, p_limit => $2, p_rows => $3) l', p_what, p_filter)
      using v_before, p_limit, p_rows
    loop
      v_before := v_row.searched_to;
      if v_row.id is null then
        v_more := true;
      else
        ids := ids || v_row.id;
        v_in_page := v_in_page + 1;
      end if;
    end loop;
    v_more := v_more or v_in_page = p_limit;
    pages := pages + 1;
  end loop;
end
$$;
select w.what, w.filter, cardinality(p.ids) as found, p.pages, p.ids = w.ids as same
from (values
  ('wallet.wallet_page', '', array(select w.id from wallet.wallet w where w.stripe = 0 order by 1 desc)),
  ('wallet.wallet_page', $$p_owner => 'us/*',$$, array(select w.id from wallet.wallet w where w.owner like 'us/%' order by 1 desc)),
  ('wallet.wallet_page', $$p_owner => 'us_*',$$, array(select w.id from wallet.wallet w where starts_with(w.owner, 'us_') order by 1 desc)),
  ('wallet.wallet_page', $$p_owner => 'eu/1',$$, array(select w.id from wallet.wallet w where w.owner = 'eu/1' order by 1 desc)),
  ('wallet.wallet_page', $$p_owner => 'eu/1*', p_asset => 'GOLD',$$, array(select w.id from wallet.wallet w where w.owner = 'eu/1' order by 1 desc limit 1)),
  ('wallet.wallet_page', $$p_owners => '{us/*,eu/1}', p_owner => 'eu/*',$$, array(select w.id from wallet.wallet w where w.owner = 'eu/1' order by 1 desc)),
  ('wallet.wallet_page', $$p_asset => 'NONE',$$, array[]::bigint[]),
  ('wallet.hold_page', '', array(select h.id from wallet.hold h order by 1 desc)),
  ('wallet.hold_page', $$p_status => 'OPEN',$$, array(select h.id from wallet.hold h where h.status = 'OPEN' order by 1 desc)),
  ('wallet.hold_page', $$p_status => 'VOIDED', p_owner => 'eu/2',$$, array(select h.id from wallet.hold h where h.status = 'VOIDED' order by 1 limit 1 offset 1)),
  ('wallet.hold_page', $$p_owner => 'us/*',$$, array[]::bigint[]),
  ('wallet.transaction_page', '', array(select t.id from wallet.txn t order by 1 desc)),
  ('wallet.transaction_page', $$p_status => 'refused',$$, array(select t.id from wallet.txn t where t.refusal is not null order by 1 desc)),
  ('wallet.transaction_page', $$p_kind => 'spend', p_status => 'posted',$$, array(select t.id from wallet.txn t where t.kind = 'spend' and t.refusal is null order by 1 desc)),
  ('wallet.transaction_page', $$p_owner => 'us_*', p_kind => 'transfer',$$, array(select t.id from wallet.txn t where t.kind = 'transfer' order by 1 desc)),
  ('wallet.transaction_page', $$p_owner => 'us_1', p_owners => '{eu/*}', p_kind => 'transfer',$$, array(select t.id from wallet.txn t where t.kind = 'transfer' order by 1 desc)),
  ('wallet.transaction_page', $$p_owner => 'us_1', p_owners => '{us/*}', p_kind => 'transfer',$$, array[]::bigint[])
) w (what, filter, ids), pg_temp.pages(w.what, w.filter, 70, 100) p;

-- By time: the search ends in the range, and rows out of it are not shown. The rows were all written in this minute, so two older ones are put beside them.
create table public.timed (id bigint primary key, at timestamptz);
insert into public.timed select i * 10, timestamptz '2026-01-01' + i * interval '1 min' from generate_series(1, 5000) i;
select pawl.id_at('public.timed', 'at', timestamptz '2026-01-01' + i * interval '30 s') as at, i
from unnest('{0,1,2,3,4,5,9999,10000,10001}'::int[]) i;
select pawl.id_at('public.timed', 'at', null);
select r.after, r.before from pawl.id_range('public.timed', 'at', '2026-01-01 10:00', '2026-01-01 11:00', null) r;
select r.after, r.before from pawl.id_range('public.timed', 'at', '2026-01-01 10:00', null, 6500) r;
delete from public.timed;
select pawl.id_at('public.timed', 'at', '2026-01-01'), r.after, r.before from pawl.id_range('public.timed', 'at', '2026-01-01', '2026-01-02', null) r;
select (select count(*) from wallet.transaction_page(p_since => pawl.now() - interval '1 h', p_limit => 1000)) as since,
       (select count(*) from wallet.transaction_page(p_until => pawl.now() - interval '1 h')) as until,
       (select count(*) from wallet.wallet_page(p_since => pawl.now() + interval '1 h')) as later,
       (select count(*) from wallet.hold_page(p_since => pawl.now() - interval '1 h', p_until => pawl.now() + interval '1 h')) as holds;

-- What a row says.
select w.owner, w.asset, w.balance, w.held, w.available, w.floor, w.version, w.frozen from wallet.wallet_page('eu/1') w;
select w.owner, w.asset, w.balance, w.floor from wallet.wallet_page('@system') w;
select h.owner, h.asset, h.amount, h.captured, h.remaining, h.status from wallet.hold_page('eu/1') h union all
select h.owner, h.asset, h.amount, h.captured, h.remaining, h.status from wallet.hold_page('eu/30') h;
select t.kind, t.status, t.owner, t.other, t.asset, t.amount, t.ref is not null as ref, t.refusal, t.reason from wallet.transaction_page('eu/1') t;
select t.kind, t.status, t.refusal, t.reason from wallet.transaction_page('eu/120') t;

-- Rows that a page reads, of the listed table and by lookups for each: bounded by p_rows, and nothing is scanned.
create function pg_temp.rows (p_what text, p_filter text, p_rows integer, out rows bigint, out scanned bigint) language plpgsql as $$
declare
  v_before record;
  v_now record;
begin
  select sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0)) as total, sum(seq_tup_read) filter (where relname <> 'asset') as scan into v_before
  from pg_stat_xact_user_tables where schemaname in ('pawl', 'wallet');
  execute format('select count(*) from %s(%s p_limit => 10, p_rows => %s)', p_what, p_filter, p_rows);
  select sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0)) as total, sum(seq_tup_read) filter (where relname <> 'asset') as scan into v_now
  from pg_stat_xact_user_tables where schemaname in ('pawl', 'wallet');
  rows := v_now.total - v_before.total;
  scanned := v_now.scan - v_before.scan;
end
$$;
select l.what, l.filter, r.rows <= l.most as bounded, r.scanned
from (values
  ('wallet.wallet_page', '', 100), ('wallet.wallet_page', $$p_owner => 'none*',$$, 60), ('wallet.wallet_page', $$p_owner => 'none',$$, 10),
  ('wallet.hold_page', '', 100), ('wallet.hold_page', $$p_owner => 'none*',$$, 100), ('wallet.hold_page', $$p_status => 'CAPTURED',$$, 60),
  ('wallet.transaction_page', '', 100), ('wallet.transaction_page', $$p_owner => 'none*',$$, 160), ('wallet.transaction_page', $$p_kind => 'refund',$$, 60)
) l (what, filter, most), pg_temp.rows(l.what, l.filter, 50) r;

-- Batches.
select count(*) from generate_series(1, 5) i cross join lateral pawl.batch_new(('00000000-0000-0000-0000-00000000000' || i)::uuid, 'nightly') b;
select count(*) from pawl.send('bills', array_fill('bill'::text, '{3}'), array_fill('1'::jsonb, '{3}'),
  p_batch_id => (select b.batch_id from pawl.batch b order by b.id limit 1));
select count(*) from (select pawl.batch_seal(b.batch_id) from pawl.batch b where b.id <= 2) s;
select b.id, b.name, b.status, b.domain, b.sealed_at is not null as sealed, b.searched_to from pawl.batch_page() b;
select b.id, b.status from pawl.batch_page(p_status => 'OPEN', p_limit => 2) b;
select b.id, b.searched_to from pawl.batch_page(p_status => 'SEALED', p_limit => 2, p_rows => 3) b;
select count(*) from pawl.batch_page(p_name => 'daily');
select b.id from pawl.batch_page(p_domains => '{bil*}') b;
select b.id from pawl.batch_page(p_domains => '{bil}') b;

select count(*) from wallet.wallet_page(p_limit => 0);
select count(*) from wallet.hold_page(p_limit => 1001);
select count(*) from wallet.transaction_page(p_rows => 0);
select count(*) from pawl.batch_page(p_limit => null);
select pawl.names_like('{a,b*,"100%*","x\\_y",*}'), pawl.names_like(null);
