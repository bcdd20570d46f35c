-- Drops the temporary database once only vacuums of the server's own are connected to it. $1 name
select format('drop database if exists %I', $1::text) as value
