-- $1 types text[], $2 limit integer, $3 lease_ms integer, $4 tries_max integer.
-- A row per letter: id bigint, operation_type, operation_key text, operation_data jsonb, lease bigint.
select id, operation_type, operation_key, operation_data, lease
from pawl.dead_letter_claim($1, $2, $3, $4)
