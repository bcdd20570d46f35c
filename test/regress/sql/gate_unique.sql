-- gate_unique.sql - a command that a limit holds back keeps its line, its priority and its age when a duplicate replaces or moves it.
\i ../fake_clock.sql
insert into pawl.fake_clock (at) values ('2026-01-01 00:00 UTC');
create function sent (
  p_type text, p_payload jsonb, p_key text default null, p_action text default null, p_delay_s integer default null, p_order text default null,
  out is_new boolean, out duplicate text)
  language sql as $$
  select s.is_new, s.duplicate
  from pawl.send('shop', array[p_type], array[p_payload], p_delays_ms => array[p_delay_s * 1000::bigint], p_priorities => array[7],
                 p_order_keys => array[p_order], p_unique_keys => array[p_key], p_on_duplicates => array[p_action]) s
$$;
create function claimed () returns text language sql as $$
  select coalesce(string_agg(c.type || ' ' || left(c.payload::text, 12), ', '), 'nothing')
  from pawl.claim(pawl.domain_find('shop'), 10, 60000, array_fill(0::bigint, array[10]), null, 'w') c
$$;
create function ended () returns bigint language sql as $$
  with s as (select s.* from (select array_agg(l.id) as ids, array_agg(l.token) as tokens, array_agg('complete'::text) as outcomes from pawl.lease l) l,
    pawl.settle(l.ids, l.tokens, l.outcomes) s)
  select count(*) from s
$$;
select from pawl.domain_limit_set('shop', null, 1);
select is_new from sent('first', '1');
select claimed();
-- Held back: one whose payload grows, and one that is put off.
select is_new, duplicate from sent('large', '2', 'a');
select is_new, duplicate from sent('later', '3', 'b', p_order => 'k');
select claimed();
select r.priority, r.line is not null as in_line from pawl.ready r order by r.id;
select is_new, duplicate from sent('large', to_jsonb(repeat('x', 20000)), 'a', 'replace');
select is_new, duplicate from sent('later', '3', 'b', 'move', 60, 'k');
select r.priority, r.line is not null as in_line, r.extras from pawl.ready r order by r.id;
select d.priority from pawl.delayed d;
-- Its age is that of the sending, not of the line.
update pawl.fake_clock set at = at + interval '30 s';
select d.queued, d.oldest_s from pawl.domain_list('shop', null, 1, 'name') d;
select pawl.command_gate_note(c.id, 'shop') from pawl.command c where c.type = 'large';
select ended();
select claimed();
update pawl.fake_clock set at = at + interval '1 min';
select moved from pawl.requeue_due(100, 'epoch', 1000);
select ended();
select claimed();
select ended();
-- Where no limit holds it back, none is named.
select is_new from sent('other', '4');
select from pawl.domain_limit_set('shop', 'else', 1);
select pawl.command_gate_note(c.id, 'shop') from pawl.command c where c.type = 'other';
select count(*) as left_in_lines from pawl.ready where line is not null or priority < 0;
-- A filter with a member that is misspelled, null or of another noun decides about nothing.
select count from pawl.bulk_count('command', 'cancel', '{"domian": "shop"}');
select count from pawl.bulk_count('command', 'cancel', '{"domain": null}');
select count from pawl.bulk_count('process', 'cancel', '{"order_key": "k"}');
select count from pawl.bulk_count('command', 'cancel', '{"domain": "shop"}');
-- An operation that fails as a whole leaves others their turn, and its next chunk is smaller.
select is_new from pawl.bulk_start('00000000-0000-4000-8000-000000000001', 'command', 'complete', '{"domain": "shop"}', '{"result": "secret"}');
update pawl.fake_clock set at = at + interval '1 s';
select is_new from pawl.bulk_start('00000000-0000-4000-8000-000000000002', 'command', 'cancel', '{"domain": "none"}');
select pawl.bulk_skip();
select operation_id, ended from pawl.bulk_step();
select chunk, stepped_at is not null as was_skipped from pawl.bulk_operation where operation_id = '00000000-0000-4000-8000-000000000001';
select details from pawl.control_event where subject = 'bulk' order by id;
