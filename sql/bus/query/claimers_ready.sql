-- Which claimers have something to claim; a row for each, at least one, the same three numbers in each. ord: from 1; 0: none has.
-- $1 domains, $2 types joined by line feeds or null, $3 ten low watermarks for each
select w.allocated, w.running, w.oldest, coalesce(f.ord, 0) as ord
from pawl.claimers_ready($1::text[], $2::text[], $3::bigint[]) w
left join unnest(w.ready) f (ord) on true
