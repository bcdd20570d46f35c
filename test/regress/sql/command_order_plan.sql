-- Claims, sends and settles do not read parked commands, however many there are: the pages they read are counted. Nothing can be vacuumed
-- within one transaction, so the passed keys leave their dead rows in the way, as while an old snapshot is held.
set client_min_messages = warning;
create table pages (what text, n integer, pages bigint);
-- Runs a statement; how many pages did it read?
create function pages (p_what text, p_n integer, p_sql text) returns void language plpgsql as $$
declare
  v_plan json;
begin
  execute 'explain (analyze, buffers, format json) ' || p_sql into v_plan;
  insert into pages values (p_what, p_n, (v_plan -> 0 -> 'Plan' ->> 'Shared Hit Blocks')::bigint + (v_plan -> 0 -> 'Plan' ->> 'Shared Read Blocks')::bigint);
end
$$;
-- A round of one key: a command is sent, found by a claim and parked; the one that has the key ends, and the next one is leased.
create function round (p_n integer) returns void language plpgsql as $$
begin
  perform pages('send', p_n, $s$ select pawl.send('shop', 't', '1', p_order_key => 'busy') $s$);
  perform pages('claim', p_n, $s$ select count(*) from pawl.claim(pawl.domain_find('shop'), 10, 600000, array_fill((select min(pos) - 1 from pawl.ready), array[10]), null, 'w') $s$);
  perform pages('settle', p_n, $s$ select count(*) from pawl.lease l, pawl.settle(array[l.id], array[l.token], array['complete']) s where l.id = (select id from pawl.order_turn where domain_id = pawl.domain_find('shop') and order_key = 'busy') $s$);
  perform pages('claim next', p_n, $s$ select count(*) from pawl.claim(pawl.domain_find('shop'), 10, 600000, array_fill((select min(pos) - 1 from pawl.ready), array[10]), null, 'w') $s$);
end
$$;
select pawl.send('shop', 't', '0', p_order_key => 'busy') is not null;
select count(*) from pawl.claim(pawl.domain_find('shop'), 10, 600000, array_fill(0::bigint, array[10]), null, 'w');
do $$ begin for i in 1 .. 20 loop perform round(i); end loop; end $$;

-- A million parked commands of 20000 keys that other commands have.
insert into pawl.order_turn select (select pawl.domain_find('shop')), 'key ' || k, 1, 1 from generate_series(1, 20000) k;
alter table pawl.parked drop constraint parked_pkey;
drop index pawl.parked_domain;
insert into pawl.parked select (select pawl.domain_find('shop')), 'key ' || n % 20000 + 1, n from generate_series(1000001, 2000000) n;
alter table pawl.parked add constraint parked_pkey primary key (domain_id, order_key, id);
create index parked_domain on pawl.parked (domain_id, id);
select setval('pawl.command_seq', 2000000);
do $$ begin for i in 101 .. 120 loop perform round(i); end loop; end $$;

-- The indexes of pawl.parked are two levels higher; nothing else may cost more. The median: a round after an autovacuum reads catalogs too,
-- because its statements are planned anew.
select a.what, percentile_disc(0.5) within group (order by b.pages) <= percentile_disc(0.5) within group (order by a.pages) + 12 as is_flat
from pages a join pages b using (what)
where a.n between 11 and 20 and b.n between 111 and 120
group by a.what order by a.what;
select count(*) as parked from pawl.parked;
