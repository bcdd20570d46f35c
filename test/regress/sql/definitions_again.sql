-- Functions of users depend on ours: `begin atomic` bodies and views are bound to them when they are created. Applying the
-- definitions again, as a migration does, must not fail for that.
\set VERBOSITY terse
set client_min_messages = warning;
create schema shop;
create function shop.one (p_order bigint) returns uuid language sql
begin atomic
  select pawl.send('shop', 'charge', jsonb_build_object('order', p_order));
end;
create function shop.text () returns uuid language sql
begin atomic
  select pawl.send('shop', 'charge', '{}'::text);
end;
create function shop.many () returns bigint language sql
begin atomic
  select count(*) from pawl.send('shop', array['a', 'b'], array['1', '2']::jsonb[]);
end;
create view shop.domains as select d.name from pawl.domain d;

begin;
\set definitions `for file in $(grep -oE '^(base|bus)/[a-z_]+.sql' ../../../sql/schema.txt | grep -v tables.sql); do ../../../scripts/embed_sql.py --print ../../../sql $file; done`
\set ECHO none
:definitions
\set ECHO all
commit;
select shop.one(7) is not null as one, shop.text() is not null as text, shop.many() as many;
select name from shop.domains;
