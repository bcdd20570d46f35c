-- progress.sql - what handlers report: under the token of a lease, the newest one of each command, with its attempt; nothing is written that is refused.
\ir ../fake_clock.sql
insert into pawl.fake_clock (at) values ('2026-01-01 12:00:00+00');

create function claim_some (p_limit integer) returns table (command_id uuid, attempt smallint, progress jsonb) language sql as $$
  select c.command_id, c.attempt, c.progress
  from pawl.claim(pawl.domain_find('shop'), p_limit, 60000, array_fill(0::bigint, array[10]), null, 'w') c
$$;
create view leased as
  select array_agg(l.id order by l.id) as ids, array_agg(l.token order by l.id) as tokens, count(*)::integer as count from pawl.lease l;
create view shown as
  select right(c.command_id::text, 1) as command, g.attempt, g.percent, g.text, g.step, g.at
  from pawl.progress g join pawl.command c on c.id = g.id order by g.id;
select count(*) from pawl.send('shop', array['a', 'a', 'a'], array['1', '2', '3']::jsonb[], array[
  '018f0000-0000-7000-8000-000000000001', '018f0000-0000-7000-8000-000000000002', '018f0000-0000-7000-8000-000000000003']::uuid[]);
select count(*), count(progress) from claim_some(10);

-- A percentage, a sentence, or both; a report replaces the one before as a whole.
select r.* from leased l, pawl.report_progress(l.ids, l.tokens, array[40, null, 0], array[null, 'reading', 'begun']) r;
select * from shown;
update pawl.fake_clock set at = at + interval '1 s';
select r.* from leased l, pawl.report_progress(l.ids[:2], l.tokens[:2], p_texts => array['half', 'all read']) r;
select * from shown;
-- Of a step of a process.
select r.* from leased l, pawl.report_progress(l.ids[:1], l.tokens[:1], array[41], null, array['pack[2]']) r;
select * from shown where command = '1';
-- The last one of a command counts.
select r.* from leased l, pawl.report_progress(array[l.ids[1], l.ids[1]], array[l.tokens[1], l.tokens[1]], array[50, 51]) r;
select * from shown where command = '1';
-- A row that changes has no new entry in an index.
begin;
select count(*) from leased l, generate_series(1, 20) n, pawl.report_progress(l.ids, l.tokens, array[n, n, n]) r;
select pg_stat_get_xact_tuples_updated('pawl.progress'::regclass) >= 60 as updated,
       pg_stat_get_xact_tuples_updated('pawl.progress'::regclass)
         = pg_stat_get_xact_tuples_hot_updated('pawl.progress'::regclass) as hot;
rollback;

-- Nothing of a refused call is written.
\set refused 'from leased l, pawl.report_progress(l.ids[:2], l.tokens[:2], '
select r.* :refused array[1, 101]) r;
select r.* :refused array[-1, 1]) r;
select r.* :refused array[1, null]) r;
select r.* :refused null, array['a', '']) r;
select r.* :refused null, array['a', repeat('ä', 201)]) r;
select r.* :refused array[1, 1], null, array['a', '']) r;
select r.* :refused array[1, 1], null, array['a', repeat('x', 401)]) r;
select r.* :refused array[1]) r;
select r.* :refused '[0:1]={1,1}') r;
select r.* :refused null) r;
select pawl.report_progress(null, '{1}', '{1}');
select pawl.report_progress('{1}', null, '{1}');
select pawl.report_progress('{null}', '{1}', '{1}');
select pawl.report_progress(array_fill(1::bigint, '{10001}'), array_fill(1::bigint, '{10001}'), array_fill(1, '{10001}'));
select * from pawl.report_progress('{}', '{}', '{}');
select r.* :refused null, array['a', repeat('ä', 200)]) r;
select command, percent, char_length(text) as characters from shown;

-- The worker of the first lost its lease, and another one has it: its reports change nothing, beside those that count.
create table lost as select * from leased;
update pawl.fake_clock set at = at + interval '2 min';
select moved from pawl.requeue_due(100, '-infinity', 0);
select r.* from lost l, pawl.report_progress(l.ids, l.tokens, array[90, 91, 92]) r;
-- The next attempt is given the last progress of the one before.
select * from claim_some(1);
select r.* from lost o, leased n, pawl.report_progress(o.ids[1] || n.ids || o.ids[1], o.tokens[1] || n.tokens || o.tokens[1], array[97, 10, 98]) r;
select * from shown;

-- It stays when the command has ended, and goes with it.
select s.settled, s.status from leased l, pawl.settle(l.ids, l.tokens, array['complete']) s;
select pawl.command_show('018f0000-0000-7000-8000-000000000001') -> 'progress';
select pawl.command_show('018f0000-0000-7000-8000-000000000002') -> 'progress' -> 'percent' as percent;
update pawl.fake_clock set at = at + interval '3 days';
select pawl.prune(1000, interval '2 days', interval '2 days') as pruned;
select command from shown;
-- What an operator has tried again from the troubleshooting queue begins with attempt 1, and with the progress.
select count(*) from claim_some(10);
select s.status from leased l, pawl.settle(l.ids, l.tokens, array_fill('fail'::text, array[l.count])) s;
select verdict from pawl.command_decide(array['018f0000-0000-7000-8000-000000000002'::uuid], null, 'retry', 'ann', null, null);
select command_id, attempt, progress ->> 'attempt' as reported_by from claim_some(10);
