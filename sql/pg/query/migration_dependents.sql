-- Views and functions of users that depend on tables of pawl's schemas, by name. Columns: value text, null: none.
select string_agg(distinct u.name, ', ') as value
from (
  select case when c.oid is null then pg_describe_object(d.classid, d.objid, 0)
              else format('%s %I.%I', case c.relkind when 'm' then 'materialized view' else 'view' end, n.nspname, c.relname) end as name
  from pg_depend d
  join pg_class t on t.oid = d.refobjid and d.refclassid = 'pg_class'::regclass
  left join pg_rewrite r on d.classid = 'pg_rewrite'::regclass and r.oid = d.objid
  left join pg_class c on c.oid = r.ev_class
  left join pg_proc p on d.classid = 'pg_proc'::regclass and p.oid = d.objid
  join pg_namespace n on n.oid = coalesce(c.relnamespace, p.pronamespace)
  where t.relnamespace in (to_regnamespace('pawl'), to_regnamespace('wallet'))
    and n.nspname not in ('pawl', 'wallet', 'rating', 'pgmq') and d.deptype = 'n'
) u
