-- 0025_process_responses.sql - how many responses from outside a process has, and their bytes as text. They are counted in the process's
-- row, which each response updates anyway; adding them up at each response would take the square of their number.

alter table pawl.process
  add column response_count integer not null default 0,
  add column response_bytes bigint not null default 0;

update pawl.process p set response_count = r.count, response_bytes = r.bytes
from (
  select r.id, count(*) as count, sum(pg_column_size(r.payload)) as bytes
  from pawl.process_response r where r.name !~ '^[$]' group by r.id) r
where p.id = r.id;
