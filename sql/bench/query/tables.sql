-- Tables of schema $1 and how many bytes they have, with indexes and TOAST.
select c.relname::text as name, pg_total_relation_size(c.oid) as bytes
from pg_class c
join pg_namespace n on n.oid = c.relnamespace
where n.nspname = $1::text and c.relkind = 'r'
order by c.relname
