-- lease_token_guess.sql - a token is random: a client that has some of them, and knows when another was given out, cannot guess that one.
-- In 300 tokens each of the 53 bits is set and not set: none of them is a count, a time or a constant.
select count(distinct t) as tokens, min(t) >= 1 as above_0, max(t) < 1::bigint << 53 as below_2_53,
       (select count(*) from generate_series(0, 52) b where b not in (
          select b from generate_series(0, 52) b, unnest(array_agg(t)) u group by b having count(distinct u >> b & 1) = 2)) as constant_bits
from (select pawl.lease_token() from generate_series(1, 300)) t (t);

create function claim_some () returns setof bigint language sql as $$
  select c.id from pawl.claim(pawl.domain_find('shop'), 10, 60000, array_fill(0::bigint, array[10]), null, 'w') c
$$;
create function guesses (p_ids out bigint[], p_tokens out bigint[]) language sql as $$
  select array_agg(l.id order by n), array_agg(l.token + n order by n)
  from (select id, token from pawl.lease order by id limit 1) l, generate_series(1, 41) n
$$;
select count(*) from pawl.send('shop', array['a', 'a', 'a'], array['1', '2', '3']::jsonb[]);
select count(*) from claim_some();
-- Of several tokens for one command the right one counts, and only that.
select verdict, count(*) from guesses() g, pawl.extend(g.p_ids, g.p_tokens, 60000) group by 1;
select verdict, count(*) from guesses() g, pawl.release(g.p_ids, g.p_tokens) group by 1;
select settled, status, count(*) from guesses() g, pawl.settle(g.p_ids, g.p_tokens, array_fill('complete'::text, array[41])) group by 1, 2;
select settled, status, count(*) from guesses() g, pawl.settle(g.p_ids, g.p_tokens, array_fill('retry'::text, array[41])) group by 1, 2;
select settled, status, count(*)
from guesses() g, pawl.settle_items(true, g.p_ids, g.p_tokens, array_fill('fail'::text, array[41]), null, null, null, null, null) group by 1, 2;
select count(*) from pawl.lease;

-- A lease that was lost and the one that came after it, in any order: the first is lost.
select verdict from (select id, token from pawl.lease order by id limit 1) l, pawl.extend(array[l.id, l.id], array[l.token, l.token + 1], 60000);
select settled, status from (select id, token from pawl.lease order by id limit 1) l,
  pawl.settle(array[l.id, l.id], array[l.token - 1, l.token], '{retry,complete}');
-- So it is in a transaction that several clients share.
select settled, status from (select id, token from pawl.lease order by id limit 1) l,
  pawl.settle_items(true, array[l.id, l.id], array[l.token + 1, l.token], '{complete,complete}', null, null, null, null, null);
-- The same item twice is settled once.
select settled, status from (select id, token from pawl.lease order by id limit 1) l,
  pawl.settle(array[l.id, l.id], array[l.token, l.token], '{complete,complete}');

-- Commands that the caller did not find have the status UNKNOWN.
select settled, status from pawl.settle_items(true, '{0,0}', '{1,2}', '{complete,complete}', null, null, null, '{shop,shop}', null);

-- Bounds.
create table many as select array_agg(n) as ids from generate_series(1, 10001) n;
select count(*) from many m, pawl.extend(m.ids, m.ids, 60000);
select count(*) from many m, pawl.release(m.ids, m.ids);
select count(*) from many m, pawl.settle(m.ids, m.ids, array_fill('complete'::text, array[10001]));
select count(*) from many m, pawl.extend(m.ids[:10000], m.ids[:10000], 60000);
