-- The statement that makes the database of a bench: a name cannot be a parameter there. $1 name
select format('create database %I template template0', $1::text) as value
