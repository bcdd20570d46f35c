-- Several commands in one transaction: those whose call succeeds are settled, one that fails is undone alone, and what a neighbour could notice undoes all.
create schema app;
create table app.effect (n integer, xid xid8 default pg_current_xact_id());
create table app.account (id integer primary key, parent integer references app.account deferrable initially deferred);
-- What it does is in its payload: SQL, run in this order.
create function app.run (payload jsonb, command_id uuid) returns jsonb language plpgsql as $$
declare
  v_sql text;
begin
  insert into app.effect values ((payload ->> 'n')::integer);
  for v_sql in select jsonb_array_elements_text(payload -> 'run') loop
    execute v_sql;
  end loop;
  return payload -> 'result';
end
$$;

-- Sends these commands, claims them and calls them together. Says which were settled, or why none was.
create procedure call_shared (p_payloads jsonb[]) language plpgsql as $$
declare
  v_row record;
begin
  truncate app.effect, app.account;
  delete from pawl.lease;
  perform from pawl.send('shop', array_fill('run'::text, array[cardinality(p_payloads)]), p_payloads);
  select array_agg(c.id order by c.id) as ids, array_agg(c.token order by c.id) as tokens, array_agg(c.payload order by c.id) as payloads,
         array_agg(c.command_id order by c.id) as command_ids
  into v_row from pawl.claim(pawl.domain_find('shop'), 100, 600000, array_fill(0::bigint, array[10]), null, 'w') c;
  begin
    raise notice 'settled: %', (
      select array_agg(h.ord || ' ' || h.status order by h.ord)
      from pawl.handler_call_shared('app', 'run', v_row.ids, v_row.tokens, v_row.payloads, v_row.command_ids) h);
  exception when others then
    raise notice 'none: %', sqlerrm;
  end;
  raise notice 'effects: %, transactions: %, leased: %',
    (select array_agg(e.n order by e.n) from app.effect e), (select count(distinct e.xid) from app.effect e), (select count(*) from pawl.lease);
end
$$;

call call_shared('{"{\"n\": 1}", "{\"n\": 2, \"result\": {\"paid\": 2}}", "{\"n\": 3}"}');
select o.result from pawl.outcome o order by o.id;

-- An error of one, whichever it is; the result of one is too large to be held for long.
call call_shared('{"{\"n\": 1}",
  "{\"n\": 2, \"run\": [\"select 1 / 0\"]}",
  "{\"n\": 3, \"run\": [\"do $d$ begin raise exception using errcode = ''QU065''; end $d$\"]}",
  "{\"n\": 4}"}');
call call_shared('{"{\"n\": 1, \"run\": [\"do $d$ begin assert false; end $d$\"]}",
  "{\"n\": 2, \"run\": [\"do $d$ begin raise exception using errcode = ''08006''; end $d$\"]}"}');
create function app.digits () returns jsonb language sql as $$ select to_jsonb(string_agg(md5(g::text), '')) from generate_series(1, 40000) g $$;
call call_shared(array['{"n": 1}', jsonb_build_object('n', 2, 'result', app.digits())]);

-- A time limit strikes whichever runs.
call call_shared('{"{\"n\": 1}",
  "{\"n\": 2, \"run\": [\"do $d$ begin raise exception using errcode = ''57014'', message = repeat(''x'', 100000); end $d$\"]}"}');

-- Deferred constraints keep their time, also for those that come later; one that fails undoes all, with a short message.
call call_shared('{"{\"n\": 1, \"run\": [\"insert into app.account values (1, 2)\", \"insert into app.account values (2)\"]}",
  "{\"n\": 2, \"run\": [\"insert into app.account values (3, 4)\", \"insert into app.account values (4)\"]}"}');
call call_shared('{"{\"n\": 1, \"run\": [\"insert into app.account values (1, 2)\"]}", "{\"n\": 2}"}');
call call_shared('{"{\"n\": 1, \"run\": [\"set constraints all immediate\"]}",
  "{\"n\": 2, \"run\": [\"insert into app.account values (3, 4)\", \"insert into app.account values (4)\"]}"}');

-- What a neighbour would find: a temporary table. One that is dropped leaves nothing. Settings are set back, also those of one that fails.
call call_shared('{"{\"n\": 1, \"run\": [\"create temp table seen (n integer) on commit drop\"]}", "{\"n\": 2}"}');
call call_shared('{"{\"n\": 1, \"run\": [\"create temp table seen (n integer)\", \"drop table seen\"]}",
  "{\"n\": 2}"}');
create function app.untouched () returns boolean language sql as $$
  select current_setting('timezone') <> 'Asia/Tokyo' and current_setting('synchronous_commit') <> 'local' and current_user = session_user
     and current_setting('search_path') <> 'nowhere'
$$;
call call_shared('{"{\"n\": 1, \"run\": [\"set local timezone = ''Asia/Tokyo''\", \"set local synchronous_commit = local\",
    \"set local role pawl_reader\", \"set local search_path = nowhere\"]}",
  "{\"n\": 2, \"run\": [\"do $d$ begin assert app.untouched(); end $d$\"]}"}');
call call_shared('{"{\"n\": 1, \"run\": [\"set local transaction_read_only = on\"]}", "{\"n\": 2}"}');

-- A lease that is lost undoes all: those of the others are as they were.
create function app.steal (payload jsonb, command_id uuid) returns jsonb language sql as $$
  insert into app.effect values (0) returning null::jsonb;
$$;
begin;
truncate app.effect;
delete from pawl.lease;
select count(*) from pawl.send('shop', '{run,run}'::text[], '{"{}","{}"}'::jsonb[]);
select array_agg(c.id order by c.id) as ids, array_agg(c.token order by c.id) as tokens, array_agg(c.command_id) as command_ids
from pawl.claim(pawl.domain_find('shop'), 2, 600000, array_fill(0::bigint, array[10]), null, 'w') c \gset
update pawl.lease set token = token + 1 where id = (:'ids'::bigint[])[2];
savepoint here;
select ord, status from pawl.handler_call_shared('app', 'steal', :'ids', :'tokens', '{1,2}', :'command_ids');
rollback to here;
select count(*) as effects, (select count(*) from pawl.lease) as leases from app.effect;
rollback;

-- Arguments; nothing to do.
select ord, status from pawl.handler_call_shared('app', 'run', '{}', '{}', '{}', '{}');
select ord, status from pawl.handler_call_shared('app', 'run', null, '{}', '{}', '{}');
select ord, status from pawl.handler_call_shared('app', 'run', '{1}', '{1}', '{}', '{}');
select ord, status from pawl.handler_call_shared('app', 'run', array_fill(1::bigint, array[31]), array_fill(1::bigint, array[31]),
  array_fill('1'::jsonb, array[31]), array_fill(gen_random_uuid(), array[31]));
select ord, status from pawl.handler_call_shared('app', 'none', '{1}', '{1}', '{1}', array[gen_random_uuid()]);
