-- work_left.sql - what a worker that drains a domain waits for: $1 domain, $2 types, null for all. Columns: queued, delayed, parked (behind a
-- command with the same order key), leased. Reads the queues alone, which a worker may read.
select
  (select count(*) from pawl.ready r
   where r.domain_id = d.id and ($2::text[] is null or (select c.type from pawl.command c where c.id = r.id) = any ($2))) as queued,
  (select count(*) from pawl.delayed w
   where w.domain_id = d.id and ($2::text[] is null or (select c.type from pawl.command c where c.id = w.id) = any ($2))) as delayed,
  (select count(*) from pawl.parked p
   where p.domain_id = d.id and ($2::text[] is null or (select c.type from pawl.command c where c.id = p.id) = any ($2))) as parked,
  (select count(*) from pawl.lease l
   where l.domain_id = d.id and ($2::text[] is null or (select c.type from pawl.command c where c.id = l.id) = any ($2))) as leased
from (select pawl.domain_find($1)) d (id)
