-- doctor_stuck.sql - rows that wait for a monitor or an operator, or for nothing at all.
-- Columns: expired (dead letters whose lease ran out more than a minute ago), failed, unrescued (commands whose lease ran out more
-- than a minute ago), idle_s (how long an open batch has had no new command), read (commands read for the next), lost (those that
-- are in none of the six tables; must be 0), keyless (order keys that no command can pass on; must be 0).
with newest_and_oldest as (
  (select c.id, c.domain_id, c.priority, c.order_key from pawl.command c order by c.id limit 50000)
  union
  (select c.id, c.domain_id, c.priority, c.order_key from pawl.command c order by c.id desc limit 50000)
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
          and not exists (select from pawl.ready r where r.id = c.id and r.pos <> r.id)
          and not exists (select from pawl.parked p
                          where p.domain_id = c.domain_id and p.order_key = c.order_key and p.id = c.id)) as lost,
       (select count(*) from (select from pawl.parked p
                              where not exists (select from pawl.order_turn t
                                                where t.domain_id = p.domain_id and t.order_key = p.order_key)
                              limit 10000) p)
       + (select count(*)
          from (select t.id from pawl.order_turn t order by t.domain_id, t.order_key limit 50000) t
          where not exists (select from pawl.lease l where l.id = t.id)
            and not exists (select from pawl.delayed d where d.id = t.id)
            and not exists (select from pawl.tsq q where q.id = t.id)
            and not exists (select from pawl.ready r where r.id = t.id and r.pos <> r.id)
            and not exists (select from pawl.command c
                            join pawl.ready r on r.domain_id = c.domain_id and r.priority = c.priority and r.pos = c.id
                            where c.id = t.id)
            and not exists (select from pawl.order_handover h where h.id = t.id)) as keyless
