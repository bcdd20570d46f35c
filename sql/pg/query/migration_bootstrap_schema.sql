-- A statement of its own: `if not exists` would ask for the right to create it even where it already exists.
create schema pawl
