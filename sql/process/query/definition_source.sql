-- The file of a definition. $1 its number
select d.source from pawl.process_definition d where d.id = $1::integer
