-- A statement of its own: `if not exists` would ask for the right to create it even where it is there already.
create schema pawl
