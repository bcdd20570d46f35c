-- fake_clock.sql - a clock for tests: pawl.now() is the one row of pawl.fake_clock while there is one.
--
--     insert into pawl.fake_clock (at) values ('2026-01-01 00:00 UTC');      time stands still, for every session
--     update pawl.fake_clock set at = at + interval '5 min';
--     truncate pawl.fake_clock;                                              real time again
--
-- Migrating again does not undo it: the definitions are applied only when their own text changes.

create table pawl.fake_clock (
  single boolean     primary key default true check (single),
  at     timestamptz not null
);

-- With the owner's rights, so that every role may ask what time it is.
create or replace function pawl.now ()
  returns timestamptz
  language sql volatile security definer set search_path = pawl, pg_temp
as $$ select coalesce((select at from pawl.fake_clock), clock_timestamp()) $$;
