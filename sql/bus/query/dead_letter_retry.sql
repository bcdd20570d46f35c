-- $1 id bigint. One row: moved boolean, status text (null: there is no such letter).
select moved, status
from pawl.dead_letter_retry(array[$1])
