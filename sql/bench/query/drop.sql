-- Drops the temporary database, and ends the sessions that are still connected to it. $1 name
select format('drop database if exists %I with (force)', $1::text) as value
