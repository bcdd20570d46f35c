-- Store a definition. $1 domain, $2 type, $3 the file, $4 deadline in ms or null, $5 its action or null, $6 author
select d.id, d.version, d.is_new from pawl.process_define($1, $2, $3, $4, $5, $6) d
