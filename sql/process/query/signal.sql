-- One response, and the domain of the bus to wake. $1 process id, $2 name, $3 payload, $4 key, $5 domain or null, $6 actor
select pawl.signal($1, $2, $3, $4, $5, $6) as verdict, (pawl.process_domains(array[$1::uuid], array[$5::text]))[1] as queue
