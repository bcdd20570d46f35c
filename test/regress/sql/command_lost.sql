-- Commands whose worker was lost, and those in their last attempt: what a claim takes of them.
create function claim_some (p_limit integer, p_begin integer default null, p_lost integer default 0)
  returns table (name text, attempt smallint, lost boolean) language sql as $$
  select c.payload #>> '{}', c.attempt, c.lost
  from pawl.claim(pawl.domain_find('shop'), p_limit, 60000, array_fill(0::bigint, array[10]), null, 'w', null, p_begin, p_lost) c
$$;
-- The workers of all leases are lost.
create function lose () returns void language plpgsql as $$
begin
  update pawl.lease set until = pawl.now() - interval '1 s';
  perform pawl.requeue_due(100, '-infinity', 1000);
end $$;
create function send_some (p_names text[], p_max_attempts integer default 3) returns bigint language sql as $$
  select count(*) from pawl.send('shop', array_fill('t'::text, array[cardinality(p_names)]),
    array(select to_jsonb(n) from unnest(p_names) n), p_max_attempts => array_fill(p_max_attempts::smallint, array[cardinality(p_names)]))
$$;

-- The first attempt of three is claimed ahead.
select send_some('{a,b,c,d}');
select * from claim_some(10, 0);
select lose();
-- Lost ones are not: as many as can be begun, also behind others.
select send_some('{e}');
select * from claim_some(10, 0);
select * from claim_some(10, 3);
select lose();
-- In the last attempt, alone among those that were lost; others go beside it, also ahead.
select * from claim_some(10, 3, 1);
select * from claim_some(10, 3);
select * from claim_some(10, 3, null);
select send_some('{f}');
select * from claim_some(10, 3, null);
-- A release takes back nothing of this.
select verdict, count(*) from (select array_agg(id) as ids, array_agg(token) as tokens from pawl.lease) l, pawl.release(l.ids, l.tokens) group by 1;
select * from claim_some(10, 1);
-- An attempt that ends otherwise does.
select settled from (select array_agg(id) as ids, array_agg(token) as tokens from pawl.lease) l,
  pawl.settle(l.ids, l.tokens, array_fill('retry'::text, array[cardinality(l.ids)]), null, null, array_fill(0::bigint, array[cardinality(l.ids)]));
select name from claim_some(10, 0);

-- The only attempt is the last one. Lost commands, which were queued before, go first.
select send_some('{g,h}', 1);
select * from claim_some(10, 0);
select * from claim_some(10, 1);
select * from claim_some(10);
select * from claim_some(10, -1);
