-- backlog.sql - how much work there is. Columns: as pawl.backlog, parked (counted in the same way), batch_idle_s and reply_queues_percent.
select b.ready, b.delayed, b.leased, b.in_tsq, b.allocated, b.oldest, b.oldest_ms, b.oldest_domain,
       pawl.rows_about((select count(*) from (select from pawl.parked p order by p.domain_id, p.id limit 10000) p), 'pawl.parked') as parked,
       pawl.batch_idle_s() as batch_idle_s, pawl.reply_queues_percent() as reply_queues_percent
from pawl.backlog() b
