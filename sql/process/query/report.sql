-- As query/write.sql, for reports, in which many items may be of one process: only the first one of a process that has a state returns it.
select w.ord, w.verdict, w.version, case when w.ord = min(w.ord) filter (where w.state is not null) over (partition by u.id) then w.state end as state,
       w.is_canceled, nullif(current_setting('pawl.wake', true), '') as wake
from pawl.process_write($1::bigint[], $2::bigint[], $3::text[], $4::integer[], $5::text[], $6::jsonb[], $7::text[], $8::bigint[], $9::jsonb[],
  $10::bigint[], $11::text[], $12::text[], $13::text[], $14::jsonb[], $15::bigint[], $16::text[], $17::jsonb[], $18::text[]) w
join unnest($1::bigint[]) with ordinality u (id, ord) on u.ord = w.ord
order by w.ord
