-- Does a file define this type? $1 domain, $2 type
select exists (select from pawl.process_definition d where d.domain = $1::text and d.type = $2::text)
