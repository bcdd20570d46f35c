-- batch_new.sql - $1 batch id, $2 name, $3 on_complete. Columns: batch_id, is_new.
select batch_id, is_new
from pawl.batch_new($1, $2, $3)
