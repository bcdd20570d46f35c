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
\set definitions `for file in $(grep -E '^(base|bus)/' ../../../sql/schema.txt); do ../../../scripts/embed_sql.py --print ../../../sql $file; done`
\set ECHO none
:definitions
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

-- pawl.send of an earlier version, without order keys, is renamed where something depends on it, and else dropped.
drop schema shop cascade;
create schema shop;
drop function pawl.send(text, text, jsonb, uuid, interval, integer, integer, text, text, uuid, text, text);
create function pawl.send (
  p_domain text, p_type text, p_payload jsonb default '{}', p_command_id uuid default null, p_delay interval default null, p_priority integer default null,
  p_max_attempts integer default null, p_reply_to text default null, p_correlation_id text default null, p_batch uuid default null)
  returns uuid language plpgsql as $$
begin
  return (select s.command_id from pawl.send(p_domain, array[p_type], array[p_payload], array[p_command_id]) s);
end
$$;
create function shop.old () returns uuid language sql
begin atomic
  select pawl.send('shop', 'old', '1'::jsonb, null::uuid, null::interval, null::integer, null::integer, null::text, null::text, null::uuid);
end;
:retire
\set ECHO none
:definitions
\set ECHO all
select shop.old() is not null as "goes on", pawl.send('shop', 'new', '2') is not null as "not ambiguous";
select p.oid::regprocedure from pg_proc p where p.proname = 'send_unordered';
drop function shop.old;
drop function pawl.send_unordered;

-- The version without keys likewise.
drop function pawl.send(text, text, jsonb, uuid, interval, integer, integer, text, text, uuid, text, text);
create function pawl.send (
  p_domain text, p_type text, p_payload jsonb default '{}', p_command_id uuid default null, p_delay interval default null, p_priority integer default null,
  p_max_attempts integer default null, p_reply_to text default null, p_correlation_id text default null, p_batch uuid default null, p_order_key text default null)
  returns uuid language plpgsql as $$
begin
  return (select s.command_id from pawl.send(p_domain, array[p_type], array[p_payload], array[p_command_id]) s);
end
$$;
create function shop.old () returns uuid language sql
begin atomic
  select pawl.send('shop', 'old', '1'::jsonb, null::uuid, null::interval, null::integer, null::integer, null::text, null::text, null::uuid, 'k');
end;
:retire
\set ECHO none
:definitions
\set ECHO all
select shop.old() is not null as "goes on", pawl.send('shop', 'new', '2') is not null as "not ambiguous";
select p.oid::regprocedure from pg_proc p where p.proname = 'send_unkeyed';
drop function shop.old;
drop function pawl.send_unkeyed;
