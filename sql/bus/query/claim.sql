-- Lease up to $2 commands of domain number $1 for $3 ms, each priority behind its position in $4.
-- $1 domain, $2 limit, $3 lease, $4 positions, $5 types or null, $6 worker
select c.id, c.token, c.command_id, c.type, c.payload, c.attempt::integer as attempt,
       c.max_attempts::integer as max_attempts, c.priority::integer as priority, c.pos
from pawl.claim($1::integer, $2::integer, $3::integer, $4::bigint[], $5::text[], $6::text) c
