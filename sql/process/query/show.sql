-- One process as JSON; NULL: unknown. $1 process id, $2 domain or null
select pawl.process_show($1, $2)::text
