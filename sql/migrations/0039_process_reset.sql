-- 0039_process_reset.sql - failures that an operator's retry has reset are marked, instead of compared with the time of the retry.

alter table pawl.process_step add column is_reset boolean; -- of a failure: it does not count any more; false: it stays; null: no retry has decided

update pawl.process_step s set is_reset = true
from pawl.process p where p.id = s.id and s.error is not null and s.ended_at <= p.retried_at;
