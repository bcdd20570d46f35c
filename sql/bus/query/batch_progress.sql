-- batch_progress.sql - $1 batch id. Columns: as pawl.batch_progress.
select batch_id, name, status, total, pending, in_progress, completed, failed, canceled, in_tsq, created_at, completed_at
from pawl.batch_progress($1)
