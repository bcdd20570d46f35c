-- wallet_expire_plan.sql - a look for holds that have expired reads neither the holds that are open and not due nor, twice, the dead rows
-- of those that have ended. Nothing can be vacuumed within one transaction, as while an old snapshot is held.
\i ../fake_clock.sql
insert into pawl.fake_clock (at) values ('2026-01-01 00:00 UTC');
create table pages (what text, pages bigint);
create function pages (p_what text, p_sql text) returns void language plpgsql as $$
declare
  v_plan json;
begin
  execute p_sql; -- planned, and the catalogs are read
  execute 'explain (analyze, buffers, format json) ' || p_sql into v_plan;
  insert into pages values (p_what, (v_plan -> 0 -> 'Plan' ->> 'Shared Hit Blocks')::bigint + (v_plan -> 0 -> 'Plan' ->> 'Shared Read Blocks')::bigint);
end
$$;
select count(*) from wallet.open(array['ann']);
select count(*) from wallet.post(array['topup', 'hold', 'hold'], array(select lpad(n::text, 32, '0')::uuid from generate_series(1, 3) n),
  array['ann', 'ann', 'ann'], '{100,5,5}', p_requests => array[null, '{"expires_in_s": 60}', '{"expires_in_s": 7200}']::jsonb[]);
begin;
-- 20000 that are open for a week, and 20000 that have ended since.
insert into wallet.hold (id, wallet_id, amount, expires_at)
select n, w.id, 1, timestamptz '2026-01-08 UTC' + n * interval '1 ms' from wallet.wallet w, generate_series(1000001, 1020000) n where w.owner = 'ann';
insert into wallet.hold (id, wallet_id, amount, expires_at)
select n, w.id, 1, timestamptz '2025-12-31 UTC' + n * interval '1 ms' from wallet.wallet w, generate_series(2000001, 2020000) n where w.owner = 'ann';
update wallet.hold set status = 'EXPIRED' where id > 2000000;
update pawl.fake_clock set at = at + interval '30 s';
select * from wallet.expire_from(100, null);
select pages('all', 'select * from wallet.expire_from(100, null)'), pages('since', $$select * from wallet.expire_from(100, '2026-01-01 00:00:30 UTC')$$) from generate_series(1, 3);
-- The least of three: a call that finds the catalogue's cache empty reads pages of the catalogue as well.
select what, case what when 'all' then min(pages) > 200 else min(pages) < 50 end as as_expected from pages group by what order by what;
-- The one that is due is released, and what is next is said.
update pawl.fake_clock set at = at + interval '31 s';
select * from wallet.expire_from(100, '2026-01-01 00:00:30 UTC');
select * from wallet.expire_from(100, '2026-01-01 00:01:00 UTC');
rollback;
-- A hold that is due before the start of a call is left to the next one that starts at the first.
update pawl.fake_clock set at = '2026-01-01 00:01:01 UTC';
select * from wallet.expire_from(100, '2026-01-01 00:01:01 UTC');
select * from wallet.expire_from(100, null);
select wallet.expire_from(0, null);
select wallet.expire_from(null, null);
