-- Claims of a domain with a pause or a limit read as few pages with many commands held back as with few. Nothing can be vacuumed in between.
set client_min_messages = warning;
create table pages (what text, n integer, pages bigint);
create function pages (p_what text, p_n integer, p_sql text) returns void language plpgsql as $$
declare
  v_plan json;
begin
  execute 'explain (analyze, buffers, format json) ' || p_sql into v_plan;
  insert into pages values (p_what, p_n, (v_plan -> 0 -> 'Plan' ->> 'Shared Hit Blocks')::bigint + (v_plan -> 0 -> 'Plan' ->> 'Shared Read Blocks')::bigint);
end
$$;
create function round (p_n integer) returns void language plpgsql as $$
begin
  perform pages('send', p_n, $s$ select pawl.send('shop', 'b', '1') $s$);
  perform pages('claim', p_n, $s$ select count(*) from pawl.claim(pawl.domain_find('shop'), 10, 600000, array_fill((select last_value from pawl.command_seq) - 1, array[10]), null, 'w') $s$);
  perform pages('claim of nothing', p_n, $s$ select count(*) from pawl.claim(pawl.domain_find('shop'), 10, 600000, array_fill((select last_value from pawl.command_seq), array[10]), null, 'w') $s$);
  perform pages('ready', p_n, format($s$ select ready from pawl.claimers_ready('{shop}', array[null], array_fill(%s::bigint, array[10])) $s$, (select last_value from pawl.command_seq)));
  perform pages('settle', p_n, $s$ select count(*) from pawl.lease l, pawl.settle(array[l.id], array[l.token], array['complete']) s where l.id = (select max(id) from pawl.lease) $s$);
end
$$;
-- Type a is paused; a limit holds back type c, of which each tenant has one that runs.
select pawl.domain_pause('shop', '{a}') > 0, pawl.domain_limit_set('shop', 'c', 1, null, null, null, true) is null;
select count(*) from pawl.send('shop', array['a', 'c', 'c'], array_fill('1'::jsonb, array[3]));
select count(c.id) from pawl.claim(pawl.domain_find('shop'), 10, 600000, array_fill(0::bigint, array[10]), null, 'w') c;
do $$ begin for i in 1 .. 20 loop perform round(i); end loop; end $$;

-- 200,000 commands more in the two lines, and 20,000 lines of other keys that wait for their time.
insert into pawl.ready (domain_id, priority, pos, id, attempt, max_attempts, extras, line)
select l.domain_id, -1, 1000000 + n, 2000000 + n, 0, 3, false, l.id
from generate_series(1, 200000) n join lateral (select * from pawl.line l order by l.id offset n % 2 limit 1) l on true;
insert into pawl.line (domain_id, limit_key, type, priority, turn_at)
select pawl.domain_find('shop'), 'key ' || n, 'c', 4, case when n % 2 = 0 then 'infinity' else now() + interval '1 hour' end from generate_series(1, 20000) n;
select setval('pawl.command_seq', 3000000);
analyze pawl.ready;
do $$ begin for i in 101 .. 120 loop perform round(i); end loop; end $$;
-- The indexes of lines and of the queue are one or two levels higher, and each line that might have its turn is looked for. A scan would read thousands.
select a.what, percentile_disc(0.5) within group (order by b.pages) <= 2 * percentile_disc(0.5) within group (order by a.pages) as is_flat
from pages a join pages b using (what)
where a.n between 11 and 20 and b.n between 111 and 120
group by a.what order by a.what;
