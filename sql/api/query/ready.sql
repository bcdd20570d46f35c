-- ready.sql - does the database answer? Columns: value.
select 1::bigint as value
