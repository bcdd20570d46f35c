-- function_planned.sql - functions in SQL that cannot be inlined are planned again by every statement that calls them, which costs more than
-- running them. What runs for every command, activation and response calls none.
set client_min_messages = warning; -- a start of a type that nothing runs says so

set track_functions = 'all';
create function number (p_n integer) returns uuid language plpgsql immutable as $$
begin
  return ('018f0000-0000-7000-8000-' || lpad(p_n::text, 12, '0'))::uuid;
end
$$;
-- Three steps of a process: one is recorded, one waits for a response, the last one is recorded with the end. And a command.
create procedure run_all (p_n integer) language plpgsql as $$
declare
  v_none bigint[] := array_fill(0::bigint, array[10]);
  v_lease record;
begin
  perform from pawl.send_items(false, 'shop', '{charge}', '{"{}"}', array[number(p_n)], null, null, null, null, null, null, null, null);
  select c.id, c.token into strict v_lease from pawl.claim(pawl.domain_find('shop'), 1, 60000, v_none, null, 'w') c;
  perform from pawl.settle_items(true, array[v_lease.id], array[v_lease.token], '{complete}', '{"{}"}', null, null, null, null);
  perform pawl.start('order', '{}', number(p_n + 1), 'shop');
  select c.id, c.token into strict v_lease from pawl.claim(pawl.domain_find('process:shop'), 1, 60000, v_none, null, 'w') c;
  perform from pawl.process_load(array[v_lease.id], array[v_lease.token], 1000000);
  perform from pawl.process_write(array[v_lease.id], array[v_lease.token], '{"{\"step\": \"pack\"}"}', '{"{}"}', null, '{"{\"a\": 1}"}', null, null,
    null, null, null, null, null, null, null, null);
  perform from pawl.process_write(array[v_lease.id], array[v_lease.token], null, null, null, null, null, null, null, '{WAITING_FOR_ASYNC}',
    '{"{\"step\": \"paid\"}"}', '{"[{\"kind\": \"signal\", \"name\": \"payment\", \"count\": 1}]"}',
    array[pawl.micros(pawl.now() + interval '1 hour')], null, null, null);
  perform pawl.signal(number(p_n + 1), 'payment', '{}', 'k', null, 'ann');
  select c.id, c.token into strict v_lease from pawl.claim(pawl.domain_find('process:shop'), 1, 60000, v_none, null, 'w') c;
  perform from pawl.process_write(array[v_lease.id], array[v_lease.token], '{"{\"step\": \"ship\"}"}', '{"{}"}', null, null, null, null, null, null,
    null, null, null, '{complete}', '{"{}"}', null);
end
$$;
-- Plans are kept after the first call, or after five.
do $$
begin
  for n in 1..7 loop
    call run_all(10 * n);
  end loop;
end
$$;
select pg_stat_force_next_flush(); -- of what was counted so far
begin;
call run_all(100);
select p.proname as planned_again, f.calls
from pg_stat_xact_user_functions f join pg_proc p on p.oid = f.funcid join pg_language l on l.oid = p.prolang
where l.lanname = 'sql' order by 1;
select count(*) > 20 as others_are_counted from pg_stat_xact_user_functions;
commit;
select o.status, count(*) from pawl.outcome o group by 1;
