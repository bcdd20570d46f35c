-- $1 types text[], $2 keys text[], $3 data jsonb[], $4 messages text[], $5 codes text[], $6 delay_ms integer.
-- One row: id bigint.
select id
from pawl.dead_letter_keep($1, $2, $3, $4, $5, $6)
