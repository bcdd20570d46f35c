-- $1 id bigint. One bigint: how many were deleted.
select count(*)
from pawl.dead_letter_delete(array[$1])
