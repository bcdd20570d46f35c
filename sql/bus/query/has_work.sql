-- has_work.sql - $1 domain number, $2 types or NULL for all. Columns: value, 1 when any such command is queued, delayed or
-- leased, else 0.
select pawl.has_work($1::integer, $2::text[])::integer::bigint as value
