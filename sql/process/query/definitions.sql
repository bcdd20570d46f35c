-- Versions of definitions, newest first. $1 domain, $2 type, $3 version, $4 ids below; null: any. $5 limit
select d.id, d.domain, d.type, d.version, pawl.micros(d.created_at) as created_at, d.author
from pawl.process_definition d
where ($1::text is null or d.domain = $1::text) and ($2::text is null or d.type = $2::text)
  and ($3::integer is null or d.version = $3::integer) and ($4::bigint is null or d.id < $4::bigint)
order by d.id desc
limit $5::integer
