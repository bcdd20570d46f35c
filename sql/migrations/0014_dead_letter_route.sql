-- 0014_dead_letter_route.sql - where dead letters of a type are sent when they are due.

-- One row per type whose letters are sent to the bus. Written by an administrator.
create table pawl.dead_letter_route (
  operation_type text primary key check (char_length(operation_type) between 1 and 50),
  domain         text not null check (domain ~ '^[A-Za-z0-9][A-Za-z0-9_.:-]{0,62}$'),
  command_type   text not null check (char_length(command_type) between 1 and 200)
);
