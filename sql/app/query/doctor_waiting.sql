-- doctor_waiting.sql - what alerts about shared state are about. One row: queued_s, queued_domain, queued_type, queued_id (the command that has been queued
-- for longest; NULL: none), in_tsq (counted up to 10,000), tsq_domain (of the oldest there), letters_open, retention_jump_s, handlers, handlers_failed
-- and rate_limited (pawl.tally_sum).
--
-- A command that was never delayed or claimed is queued since it was sent. Of others the time follows from the first command that was sent after their queue
-- position was allocated, so they may have been queued for longer; if there is none, from their last retry.
-- Plan: one step per domain and priority that has work, by index.
with queued as (
  select extract(epoch from pawl.now() - s.since)::bigint as seconds, n.name, c.type, c.command_id
  from pawl.ready_heads() h
  cross join lateral (select c.type, c.command_id, c.created_at from pawl.command c where c.id = h.id limit 1) c
  cross join lateral (select n.name from pawl.domain_name n where n.id = h.domain_id limit 1) n
  cross join lateral (
    select case when h.pos = h.id then c.created_at
                else coalesce((select l.created_at from pawl.command l where l.id > h.pos order by l.id limit 1),
                              (select e.at + coalesce((e.details ->> 'delay_ms')::bigint, 0) * interval '1 ms'
                               from pawl.event e where e.id = h.id and e.event = 'RETRY_SCHEDULED' order by e.at desc limit 1),
                              pawl.now()) end as since) s
  order by s.since
  limit 1
)
select q.seconds as queued_s, q.name as queued_domain, q.type as queued_type, q.command_id::text as queued_id,
       (select count(*) from (select from pawl.tsq t order by t.id limit 10000) t) as in_tsq,
       (select n.name from (select t.domain_id from pawl.tsq t order by t.id limit 1) t join pawl.domain_name n on n.id = t.domain_id limit 1) as tsq_domain,
       (select count(*) from pawl.failed_operations f where f.status <> 'resolved') as letters_open,
       pawl.retention_jump_s() as retention_jump_s, t.handlers, t.handlers_failed, t.rate_limited
from pawl.tally_sum() t
left join queued q on true
