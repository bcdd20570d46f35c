-- Every function that has planner settings, with all of them: a function that loses one may scan a large table.
select string_agg(c.setting, ', ' order by c.setting collate "C") as settings, (n.nspname || '.' || p.proname) collate "C" as function
  from pg_proc p
  join pg_namespace n on n.oid = p.pronamespace and n.nspname in ('pawl', 'pgmq', 'rating', 'wallet')
  cross join unnest(p.proconfig) c (setting)
 where c.setting ~ '^(enable_|jit=|plan_cache_mode=)'
 group by p.oid, n.nspname, p.proname
 order by function, settings;
