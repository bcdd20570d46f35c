-- The types that files define, by domain, in groups of at most 100, which is what one worker claims. By their first definition: a type that
-- is added changes the last group only. At least one row, without a domain if there are no types. has_orphans: processes have ended
-- before what they have sent
select t.domain, t.number::integer as number, string_agg(t.type, ',' order by t.first) as types, o.has_orphans
from (select exists (select from pawl.process_orphan) as has_orphans) o
left join (
  select d.domain, d.type, d.first, (row_number() over (partition by d.domain order by d.first) - 1) / 100 as number
  from (select d.domain, d.type, min(d.id) as first from pawl.process_definition d group by d.domain, d.type) d) t on true
group by t.domain, t.number, o.has_orphans
order by t.domain, t.number
