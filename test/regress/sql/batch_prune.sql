-- batch_prune.sql - retention and batches: what a batch needs for its progress stays, and a repeated request is a replay for as long as keys.

update pawl.least_age set age = '0';
create function sent(p_batch integer, p_ids integer[]) returns table (is_new boolean, status text, refusal text) language sql as $$
  select s.is_new, s.status, s.refusal from pawl.send('shop', array_fill('t'::text, array[cardinality(p_ids)]),
    array_fill('1'::jsonb, array[cardinality(p_ids)]),
    array(select ('00000000-0000-4000-8000-' || lpad(i::text, 12, '0'))::uuid from unnest(p_ids) i),
    p_batch_id => ('00000000-0000-4000-8000-00000000b' || lpad(p_batch::text, 3, '0'))::uuid) s
$$;
create function progress(p_batch integer) returns table (status text, total bigint, pending bigint, completed bigint) language sql as $$
  select p.status, p.total, p.pending, p.completed
  from pawl.batch_progress(('00000000-0000-4000-8000-00000000b' || lpad(p_batch::text, 3, '0'))::uuid) p
$$;
create function ended(p_count integer) returns bigint language sql as $$
  select count(*) from (select c.id, c.token from pawl.claim(pawl.domain_find('shop'), p_count, 60000, array_fill(0::bigint, array[10]), null, 'w') c) c,
    pawl.settle(array[c.id], array[c.token], '{complete}') s
$$;

-- Sealed, and one of two has ended long ago.
select count(*) from pawl.batch_new('00000000-0000-4000-8000-00000000b001', 'month', '{"domain": "report", "type": "done"}');
select * from sent(1, '{1,2}');
select pawl.batch_seal('00000000-0000-4000-8000-00000000b001');
select ended(1);
update pawl.outcome set ended_at = ended_at - interval '20 days';
select gone from pawl.prune_commands(100, interval '10 days', null);
select * from progress(1);
select * from sent(1, '{1,2}');

-- All have ended, and the batch is complete, but not for long.
select ended(1);
select * from progress(1);
select gone from pawl.prune_commands(100, interval '10 days', null);
select * from progress(1);

-- For long. Its commands go, and a repeat is a replay still, and completes nothing.
update pawl.outcome set ended_at = ended_at - interval '20 days';
update pawl.batch set completed_at = completed_at - interval '20 days';
select gone from pawl.prune_commands(100, interval '10 days', null);
select * from pawl.batch_new('00000000-0000-4000-8000-00000000b001', 'month', '{"domain": "report", "type": "done"}');
select * from sent(1, '{1,2}');
select * from sent(1, '{1,2,3}');
select pawl.batch_seal('00000000-0000-4000-8000-00000000b001');
select count(*) as reports from pawl.command where type = 'done';
-- With its keys it goes.
select pawl.prune_keys(100, interval '10 days');
select * from progress(1);
select count(*) from pawl.batch;

-- A command of no batch, and one of an open batch.
select count(*) from pawl.batch_new('00000000-0000-4000-8000-00000000b002');
select * from sent(2, '{4}');
select count(pawl.send('shop', 't'));
select ended(2);
update pawl.outcome set ended_at = ended_at - interval '20 days';
select gone from pawl.prune_commands(100, interval '10 days', null);
select * from progress(2);
