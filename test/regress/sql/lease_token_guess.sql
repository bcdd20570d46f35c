-- lease_token_guess.sql - a call tries one token per command: of several the greatest, because a token that was given out later is greater. So
-- a call does not try all the tokens that a lease might have.
create function claim_some () returns setof bigint language sql as $$
  select c.id from pawl.claim(pawl.domain_find('shop'), 10, 60000, array_fill(0::bigint, array[10]), null, 'w') c
$$;
create function guesses (p_ids out bigint[], p_tokens out bigint[]) language sql as $$
  select array_agg(l.id order by n), array_agg(l.token + n order by n)
  from (select id, token from pawl.lease order by id limit 1) l, generate_series(-20, 20) n
$$;
select count(*) from pawl.send('shop', array['a', 'a', 'a'], array['1', '2', '3']::jsonb[]);
select count(*) from claim_some();
-- Neither ends it, nor says which one is right.
select verdict, count(*) from guesses() g, pawl.extend(g.p_ids, g.p_tokens, 60000) group by 1;
select pawl.release(g.p_ids, g.p_tokens) from guesses() g;
select settled, status, count(*) from guesses() g, pawl.settle(g.p_ids, g.p_tokens, array_fill('complete'::text, array[41])) group by 1, 2;
select settled, status, count(*) from guesses() g, pawl.settle(g.p_ids, g.p_tokens, array_fill('retry'::text, array[41])) group by 1, 2;
select settled, status, count(*)
from guesses() g, pawl.settle_items(true, g.p_ids, g.p_tokens, array_fill('fail'::text, array[41]), null, null, null, null, null) group by 1, 2;
select count(*) from pawl.lease;

-- A lease that was lost and the one that came after it: the later one counts, and the first is lost.
select verdict from (select id, token from pawl.lease order by id limit 1) l, pawl.extend(array[l.id, l.id], array[l.token, l.token - 65536], 60000);
select settled, status from (select id, token from pawl.lease order by id limit 1) l,
  pawl.settle(array[l.id, l.id], array[l.token - 65536, l.token], '{retry,complete}');
-- In a transaction that several clients share, the others have the status BUSY.
select settled, status from (select id, token from pawl.lease order by id limit 1) l,
  pawl.settle_items(true, array[l.id, l.id], array[l.token - 65536, l.token], '{complete,complete}', null, null, null, null, null);
-- The same item twice is settled once.
select settled, status from (select id, token from pawl.lease order by id limit 1) l,
  pawl.settle(array[l.id, l.id], array[l.token, l.token], '{complete,complete}');

-- Commands that the caller did not find have the status UNKNOWN.
select settled, status from pawl.settle_items(true, '{0,0}', '{1,2}', '{complete,complete}', null, null, null, '{shop,shop}', null);

-- Bounds.
create table many as select array_agg(n) as ids from generate_series(1, 10001) n;
select count(*) from many m, pawl.extend(m.ids, m.ids, 60000);
select pawl.release(m.ids, m.ids) from many m;
select count(*) from many m, pawl.settle(m.ids, m.ids, array_fill('complete'::text, array[10001]));
select count(*) from many m, pawl.extend(m.ids[:10000], m.ids[:10000], 60000);
