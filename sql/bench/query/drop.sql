-- The statement that takes it away, with whoever is still connected. $1 name
select format('drop database if exists %I with (force)', $1::text) as value
