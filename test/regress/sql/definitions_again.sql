-- Functions of users depend on ours: `begin atomic` bodies and views are bound to them when they are created. Applying the
-- definitions again, as a migration does, must not fail for that; a function that has to go is named with what depends on it.
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
\set ECHO none
\i ../../../sql/base/retire.sql
\i ../../../sql/base/clock.sql
\i ../../../sql/base/array.sql
\i ../../../sql/base/allocation.sql
\i ../../../sql/bus/domain.sql
\i ../../../sql/bus/audit.sql
\i ../../../sql/bus/batch.sql
\i ../../../sql/bus/reply.sql
\i ../../../sql/bus/send.sql
\i ../../../sql/bus/settle.sql
\i ../../../sql/bus/claim.sql
\i ../../../sql/bus/operate.sql
\i ../../../sql/bus/show.sql
\i ../../../sql/bus/prune.sql
\i ../../../sql/base/grants.sql
\set ECHO all
commit;
select shop.one(7) is not null as one, shop.text() is not null as text, shop.many() as many;
select name from shop.domains;

-- A function that an earlier version had is dropped, unless something depends on it.
\set retire `cat ../../../sql/base/retire.sql`
create function pawl.horizon (smallint, bigint[], text[]) returns integer language sql begin atomic select 1; end;
create function shop.horizon () returns integer language sql begin atomic select pawl.horizon(1::smallint, null, null); end;
:retire
drop function shop.horizon;
:retire
select to_regprocedure('pawl.horizon(smallint, bigint[], text[])');
