-- Waits for outcomes: found by id, and asked about by number with an index lookup for each, however many commands have ended.
select count(*) from pawl.send('shop', array_fill('t'::text, array[3000]), array_fill('1'::jsonb, array[3000]));
select count(*) from pawl.claim(pawl.domain_id('shop'), 3000, 60000, array_fill(0::bigint, array[10]), null, 'w');
select s.settled, s.status, count(*)
from (select array_agg(id order by id) as ids, array_agg(token order by id) as tokens
      from (select * from pawl.lease order by id limit 2000) l) l,
     pawl.settle(l.ids, l.tokens, array_fill('complete'::text, array[2000]), array_fill('{"n": 1}'::jsonb, array[2000])) s
group by 1, 2;
select array_agg(id order by id) as waiting from (select id from pawl.command order by id offset 1990 limit 20) c \gset
select count(*), max(e) = (select max(id) from pawl.outcome) as last from pawl.outcomes_ended(:'waiting') e;
select pawl.outcomes_ended('{}');
select pawl.outcomes_ended('{0,-1,null}');

-- By id: another domain, several, none, an end.
select count(*) from pawl.send('stock', array['t','t'], array['1','2']::jsonb[],
  p_command_ids => array['0198c0de-0000-7000-8000-00000000000a', '0198c0de-0000-7000-8000-00000000000b']::uuid[]);
select count(*) from pawl.send('process:edge', array['t'], array['{}']::jsonb[], p_command_ids => array['0198c0de-0000-7000-8000-00000000000b']::uuid[]);
select f.ord, f.id is not null as known, f.domain, f.ended
from pawl.outcomes_find(
  array['0198c0de-0000-7000-8000-00000000000a', '0198c0de-0000-7000-8000-00000000000a', '0198c0de-0000-7000-8000-00000000000b',
        '0198c0de-0000-7000-8000-00000000000b', '0198c0de-0000-7000-8000-00000000000b', '0198c0de-0000-7000-8000-00000000000c', null,
        (select command_id::text from pawl.command order by id limit 1)]::uuid[],
  array[null, 'shop', null, 'stock', null, null, null, 'shop'], array[null, null, null, null, 'process:', null, null, null]) f
order by f.ord;
select ended, status, result, error from pawl.outcome_get((select min(id) from pawl.command));
select ended, status, result, error from pawl.outcome_get((select max(id) from pawl.command));
select count(*) from pawl.outcome_get(0);

-- Shown together, up to so many bytes; each as by itself.
select count(*), bool_and(s.value::text = pawl.command_show(c.command_id, 'shop')::text) as same
from pawl.commands_show(:'waiting') s join pawl.command c using (id);
select cardinality(pawl.commands_fit(:'waiting', 1000000)) as small, cardinality(pawl.commands_fit(:'waiting', 5000)) as few,
  cardinality(pawl.commands_fit(:'waiting', 0)) as one, pawl.commands_fit('{}', 5) as none, pawl.commands_fit('{0,-1}', 5000) as unknown;
update pawl.outcome set result = to_jsonb(repeat('x', 100000)) where id = (select min(i) from unnest(:'waiting'::bigint[]) i);
select cardinality(pawl.commands_fit(:'waiting', 90000)) as before_the_large_one, cardinality(pawl.commands_fit(:'waiting', 110000)) > 3 as more;

-- Malformed arguments.
select pawl.outcomes_ended(null);
select pawl.outcomes_ended('{{1,2}}');
select pawl.commands_fit(null, 1);
select * from pawl.outcomes_find(null, null, null);
select * from pawl.outcomes_find(array[null]::uuid[], '{}', array[null]);

-- By index only.
select pg_stat_force_next_flush();
select pg_stat_reset_single_table_counters(t), pg_stat_reset_single_table_counters('pawl.outcome'::regclass) from (values ('pawl.command'::regclass)) v (t);
update pg_class set relpages = 5000, reltuples = 1 where relname in ('outcome', 'outcome_pkey', 'command', 'command_pkey');
select count(*) from generate_series(1, 5), pawl.outcomes_ended(:'waiting');
select count(*) from pawl.commands_show(pawl.commands_fit(:'waiting', 1000000));
select count(*) from pawl.outcomes_find(array['0198c0de-0000-7000-8000-00000000000a']::uuid[], array[null], array[null]);
select pg_stat_force_next_flush();
select relname, seq_scan from pg_stat_user_tables where relname in ('outcome', 'command') and schemaname = 'pawl' order by 1;
