-- has_work.sql - $1 domain number, $2 types or NULL for all. Columns: value, 1 when any such command is in line, delayed or
-- leased to anyone, else 0.
select case when exists (
              select from (select r.id, r.domain_id from pawl.ready r
                           union all select d.id, d.domain_id from pawl.delayed d
                           union all select l.id, l.domain_id from pawl.lease l) w
              where w.domain_id = $1::integer
                and ($2::text[] is null
                     or exists (select from pawl.command c where c.id = w.id and c.type = any ($2::text[]))))
            then 1 else 0 end::bigint as value
