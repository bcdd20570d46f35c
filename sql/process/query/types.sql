-- The types that files define, by domain
select d.domain, string_agg(distinct d.type, ',' order by d.type) as types
from pawl.process_definition d
group by d.domain
order by d.domain
