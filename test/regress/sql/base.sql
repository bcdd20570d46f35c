-- base.sql - the clock, and who may do what.
\pset footer off

-- Time is the server's own and moves inside a transaction.
begin;
select pawl.now() between clock_timestamp() - interval '1 min' and clock_timestamp() as is_now;
select pawl.now() > transaction_timestamp() as moves;
rollback;

-- Microseconds, exactly, in any time zone; null stays null.
set time zone 'Asia/Kathmandu';
select pawl.micros('1970-01-01 00:00:00.000001 UTC') as one,
       pawl.micros('2026-11-15 07:41:22.123456 UTC') as some,
       pawl.micros('1969-12-31 23:59:59 UTC') as before,
       pawl.micros(null) as nothing;
reset time zone;

-- It is inlined: the plan shows no call.
explain (verbose, costs off)
select pawl.micros(t.at) from (values (timestamptz '2026-01-01 UTC'), ('2026-01-02 UTC')) as t (at);

-- Nothing of ours is open to the public.
select nspname
from pg_namespace
where nspname = 'pawl' and has_schema_privilege('public', oid, 'usage, create');
select oid::regprocedure as open_function
from pg_proc
where pronamespace = 'pawl'::regnamespace and has_function_privilege('public', oid, 'execute');
select oid::regclass as open_table
from pg_class
where relnamespace = 'pawl'::regnamespace and relkind in ('r', 'v')
  and has_table_privilege('public', oid, 'select, insert, update, delete, truncate, references, trigger');

-- Who may read and call what is tried in test/integration/rights_test.py.

-- Every function that acts with the owner's rights fixes its search_path.
select oid::regprocedure as unsafe
from pg_proc
where pronamespace = 'pawl'::regnamespace and prosecdef
  and not 'search_path=pawl, pg_temp' = any (coalesce(proconfig, '{}'))
order by 1;
