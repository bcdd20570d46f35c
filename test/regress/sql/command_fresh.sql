-- command_fresh.sql - ids that the sender made for the call are not looked up first, and a call that is tried again has the same outcome.
create function k(n integer) returns uuid language sql as $$ select lpad(n::text, 32, '0')::uuid $$;
create function sent(p_nowait boolean, p_ids integer[], p_types text[], p_delays_ms bigint[] default null)
  returns table (ord integer, command_id text, is_new boolean, status text, refusal text) language sql as $$
  select s.ord, right(s.command_id::text, 3), s.is_new, s.status, s.refusal
  from pawl.send_items(p_nowait, 'fresh', p_types, array_fill('{}'::jsonb, array[cardinality(p_ids)]), array(select k(n) from unnest(p_ids) n),
    p_delays_ms, null, null, null, null, null, 'me', p_fresh => true) s
$$;
create view queued as
  select right(c.command_id::text, 3) as command_id, c.type, r.pos = c.id as is_ready, d.id = c.id as is_delayed
  from pawl.command c left join pawl.ready r on r.id = c.id left join pawl.delayed d on d.id = c.id order by c.id;

-- All are new: one row says so.
select * from sent(false, '{1,2}', '{a,b}');
select * from sent(true, '{3,4}', '{a,b}');
select * from sent(true, '{5,6}', '{a,b}', '{0,60000}');
table queued;
-- Tried again after it was committed.
select * from sent(false, '{1,2}', '{a,b}');
select * from sent(true, '{3,4}', '{a,b}');
-- Ids that are not what the caller says: each has its own outcome, as without p_fresh.
select * from sent(true, '{7,1,7}', '{a,c,d}');
table queued;
-- An id whose command retention has deleted is known.
insert into pawl.kept_key (command_id, domain_id, type, payload_hash, status, ended_at)
select k(8), pawl.domain_find('fresh'), 'a', pawl.payload_hash('{}'), 'COMPLETED', now();
select * from sent(true, '{8,9}', '{a,b}');
table queued;
-- Without ids there is nothing to be fresh.
select s.ord, s.is_new, s.status from pawl.send_items(true, 'fresh', array['a'], array['{}'::jsonb], null, null, null, null, null, null, null, null,
  p_fresh => true) s;
