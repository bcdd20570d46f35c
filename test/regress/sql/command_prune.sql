-- command_prune.sql - retention is stopped neither by one command that cannot be deleted nor by one part of it that fails.
\set VERBOSITY terse

create function age () returns void language sql as $$
  update pawl.command set created_at = pawl.now() - interval '41 days';
  update pawl.outcome set ended_at = pawl.now() - interval '40 days';
$$;
create function end_all () returns bigint language sql as $$
  select count(*) from (select array_agg(c.id) as ids, array_agg(c.token) as tokens, array_agg('complete'::text) as outcomes
    from pawl.claim(pawl.domain_find('shop'), 100, 60000, array_fill(0::bigint, array[10]), null, 'w') c) c,
    pawl.settle(c.ids, c.tokens, c.outcomes) s
$$;

-- A payload that an earlier version has stored and that cannot be written as text: its key stays, and no payload is the same.
select count(*) from pawl.send('shop', array['a', 'a', 'a'], array['1', '2', '3']::jsonb[],
  array['00000000-0000-4000-8000-00000000000a', '00000000-0000-4000-8000-00000000000b', '00000000-0000-4000-8000-00000000000c']::uuid[]);
select end_all();
update pawl.command set payload = (select jsonb_agg('1e131071'::jsonb) from generate_series(1, 9000)) where payload = '2';
select age();
select * from pawl.prune_commands(100, interval '30 days', null);
select pawl.send('shop', 'a', '2'::jsonb, '00000000-0000-4000-8000-00000000000b');
select pawl.send('shop', 'a', '3'::jsonb, '00000000-0000-4000-8000-00000000000c');

-- A row that fails otherwise, here because its payload cannot be read: it stays, and the others go.
create or replace function pawl.payload_hash (p_payload jsonb) returns bytea language plpgsql immutable as $$
begin
  if p_payload = '7' then
    raise exception 'missing chunk number 0 for toast value 1' using errcode = 'XX001';
  end if;
  return sha256(convert_to(p_payload::text, 'UTF8'));
end
$$;
select count(*) from pawl.send('shop', array_fill('a'::text, array[9]), array['1', '2', '3', '4', '5', '6', '7', '8', '9']::jsonb[]);
select end_all();
select age();
select p.gone, p.after is null as over from pawl.prune_commands(9, interval '30 days', null) p;
select payload from pawl.command;
select count(*) from pawl.outcome;
select pawl.prune(9, interval '30 days', interval '20 days');
