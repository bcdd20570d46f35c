-- The extensions of this database. Columns: name text.
select extname::text as name
from pg_extension
order by extname
