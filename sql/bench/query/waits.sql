-- Processes that were started with a delay: half of them wait for a response until then, the others sleep. Returns how many.
with updated as (
  update pawl.process p
  set wait = 'WAITING_FOR_ASYNC', waits = case when p.id % 2 = 0 then '{"go": 1}'::jsonb end, step = 'wait'
  returning 1
)
select count(*) from updated
