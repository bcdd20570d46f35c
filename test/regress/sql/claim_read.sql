-- A claim of some types with p_read reads at most so many commands of other types. If it finds none of its own, it says where the next one goes on.
create function send_some (p_type text, p_count integer, p_priority integer) returns bigint language sql as $$
  select count(*) from pawl.send('read', array_fill(p_type, array[p_count]), array_fill('1'::jsonb, array[p_count]),
    p_priorities => array_fill(p_priority::smallint, array[p_count]))
$$;
-- n: how many rows of the priority are before the position, with it. Without a type: the positions that it has moved.
create function claim_part (p_after bigint[], p_types text[], p_read integer, p_limit integer default 1)
  returns table (type text, priority smallint, n bigint, pos bigint) language sql as $$
  select c.type, c.priority, (select count(*) from pawl.ready r where r.priority = c.priority and r.pos <= c.pos), c.pos
  from pawl.claim(pawl.domain_find('read'), p_limit, 60000, p_after, p_types, 'w', p_read => p_read) c
  where c.id is not null or c.pos > p_after[c.priority + 1]
$$;
-- is_empty: nothing is there, all of the priority was read.
create function firsts (p_types text[], p_read integer) returns table (priority bigint, n bigint, is_empty boolean) language sql as $$
  select f.ord - 1, (select count(*) from pawl.ready r where r.priority = f.ord - 1 and r.pos < f.pos), f.pos is null
  from pawl.decided_position(pawl.domain_find('read'), array_fill(0::bigint, array[10]), p_types, p_read) d,
       unnest(d.firsts) with ordinality f (pos, ord)
  where f.ord in (3, 4, 5, 6, 10)
$$;
-- Goes on until some are found or all is read, as a claimer does.
create function claim_all (p_types text[], p_read integer) returns table (parts integer, type text, priority smallint, n bigint)
  language plpgsql as $$
declare
  v_after bigint[] := array_fill(0::bigint, array[10]);
  v_row record;
begin
  parts := 0;
  loop
    parts := parts + 1;
    v_row := null;
    for v_row in select * from claim_part(v_after, p_types, p_read) loop
      v_after[v_row.priority + 1] := v_row.pos;
    end loop;
    exit when v_row.pos is null or v_row.type is not null;
  end loop;
  type := v_row.type;
  priority := v_row.priority;
  n := v_row.n;
  return next;
end $$;

select send_some('t', 5, 9), send_some('t', 3000, 4), send_some('mine', 1, 4), send_some('t', 100, 2), send_some('low', 1, 2);
select pg_stat_force_next_flush();
select pg_stat_reset();
select type, priority, n from claim_part(array_fill(0::bigint, array[10]), '{mine}', 1000);
select pg_stat_force_next_flush();
-- The types of 1000 commands were read, and their rows twice, in the windows and for their types.
select indexrelname, idx_tup_read between 1000 and 2300 as is_bounded
from pg_stat_user_indexes where indexrelname in ('ready_pkey', 'command_pkey') order by indexrelname;
select * from claim_all('{none}', 1000);
-- What it has read of a higher priority is not read again.
select * from claim_all('{none}', 6);
select * from claim_all('{low}', 1000);
select * from claim_all('{mine}', 1000);
-- Until something is found, and up to the limit within what is read.
select type, priority, count(*) from claim_part(array_fill(0::bigint, array[10]), '{t}', 20, 50) group by type, priority order by 2;
-- Without types there is nothing to pass over.
select type, priority, n from claim_part(array_fill(0::bigint, array[10]), null, 1);
-- The proof reads as much: nothing is proven of lower priorities, and nothing behind the end of what was read.
select * from firsts('{none}', 1000);
select * from firsts('{none}', null);
-- Those of which too much would have to be read may have something.
select cardinality(r.ready) from pawl.claimers_ready(array_fill('read'::text, array[1000]), array_fill('none'::text, array[1000]),
  array_fill(0::bigint, array[10000])) r;
select cardinality(r.ready) from pawl.claimers_ready('{read}', '{none}', array_fill(0::bigint, array[10])) r;
select claim_part(array_fill(0::bigint, array[10]), '{t}', 0);
