-- tables.sql - which pod runs a periodic task.
--
--     task   one row per task that one pod runs for all; updated by its holder every few seconds

create table pawl.task (
  name text primary key check (char_length(name) between 1 and 63),
  holder uuid not null,
  until timestamptz not null
) with (fillfactor = 20, autovacuum_vacuum_threshold = 1000);
