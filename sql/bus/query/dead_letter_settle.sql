-- One letter. $1 id bigint, $2 lease bigint, $3 worked boolean, $4 message text, $5 code text, $6 tries_max integer,
-- $7 delay_ms integer. One row: settled boolean, status text (null: the letter was deleted).
select settled, status
from pawl.dead_letter_settle(array[$1], array[$2], array[$3], array[$4], array[$5], $6, $7)
