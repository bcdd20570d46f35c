-- doctor_stuck.sql - rows that wait for a monitor or an operator, or for nothing at all.
-- Columns: expired (dead letters whose lease ran out more than a minute ago), failed, unrescued (commands whose lease ran out more
-- than a minute ago), idle_s (how long an open batch has had no new command), read (commands read for the next), lost (those that
-- are in none of the five tables; must be 0).
with newest_and_oldest as (
  (select c.id, c.domain_id, c.priority from pawl.command c order by c.id limit 50000)
  union
  (select c.id, c.domain_id, c.priority from pawl.command c order by c.id desc limit 50000)
)
select (select count(*) from pawl.failed_operations f
        where f.status = 'retrying' and f.lease_until < pawl.now() - interval '1 minute') as expired,
       (select count(*) from pawl.failed_operations f where f.status = 'failed') as failed,
       (select count(*) from (select from pawl.lease l where l.until < pawl.now() - interval '1 minute' limit 10000) l) as unrescued,
       pawl.batch_idle_s() as idle_s,
       (select count(*) from newest_and_oldest) as read,
       (select count(*)
        from newest_and_oldest c
        where not exists (select from pawl.outcome o where o.id = c.id)
          and not exists (select from pawl.lease l where l.id = c.id)
          and not exists (select from pawl.delayed d where d.id = c.id)
          and not exists (select from pawl.tsq t where t.id = c.id)
          and not exists (select from pawl.ready r where r.domain_id = c.domain_id and r.priority = c.priority and r.pos = c.id)
          and not exists (select from pawl.ready r where r.id = c.id and r.pos <> r.id)) as lost
