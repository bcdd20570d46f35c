-- 1 when any command of domain number $1 is in line, delayed or leased to anyone, else 0.
select case when exists (select from pawl.ready r where r.domain_id = $1::integer::smallint)
              or exists (select from pawl.delayed d where d.domain_id = $1::integer::smallint)
              or exists (select from pawl.lease l where l.domain_id = $1::integer::smallint)
            then 1 else 0 end::bigint as value
