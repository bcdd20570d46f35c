-- Does a file define this type, and if not, in which other domain? $1 domain, $2 type
select bool_or(d.domain = $1::text) is true as is_defined, min(d.domain) filter (where d.domain <> $1::text) as elsewhere
from pawl.process_definition d
where d.type = $2::text
