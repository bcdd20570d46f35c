-- clock.sql - the one source of time for all SQL, and the form in which time leaves it.
-- Neither function fixes its search_path: both are meant to be inlined, and name everything in full.

-- Production knows no other clock, so no role can bend time. Tests replace this function.
create or replace function pawl.now ()
  returns timestamptz
  language sql volatile parallel safe
as $$ select pg_catalog.clock_timestamp() $$;

-- Microseconds since 1970. By way of UTC, because only that form of extract is immutable and so can be inlined.
create or replace function pawl.micros (p_at timestamptz)
  returns bigint
  language sql immutable parallel safe
as $$ select (extract(epoch from p_at at time zone 'UTC') * 1000000)::bigint $$;

-- As JSON has it.
create or replace function pawl.iso (p_at timestamptz)
  returns text
  language sql immutable
as $$
  select to_char(p_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
$$;
