-- process_retry_edge.sql - what a retry leaves as it is recorded: failures and replies of functions that were interrupted, and replies of commands
-- that retention has deleted.
set client_min_messages = warning; -- a start of a type that nothing runs says so

create function process (p_n integer) returns uuid language sql immutable as $$
  select ('018f0000-0000-7000-8000-' || lpad(p_n::text, 12, '0'))::uuid
$$;
create function claim_one (p_domain text) returns table (id bigint, token bigint) language sql as $$
  select c.id, c.token from pawl.claim(pawl.domain_find(p_domain), 1, 600000, array_fill(0::bigint, array[10]), null, 'w') c
$$;
create function record (p_id bigint, p_token bigint, p_step text, p_error text, p_call integer) returns text language sql as $$
  select w.verdict
  from pawl.process_write(array[p_id], array[p_token], array[jsonb_build_object('step', p_step, 'call', p_call, 'call_kind', 'step')],
    case when p_error is null then array['1'::jsonb] end, case when p_error is not null then array[p_error] end, null, null, null, null, null, null, null, null, null, null, null) w
$$;

-- The function has handled that the card was refused, and sends an invoice when its deadline passes. If the refusal did not count any more, the next run
-- would charge the card, too. The command that it has not seen the outcome of stays as well.
select pawl.start('order', '{}', process(1), 'code', p_deadline => interval '1 ms', p_on_deadline => 'troubleshoot') is not null as started;
create table leased as select * from claim_one('process:code');
select record(id, token, 'charge', 'card refused', 0) from leased;
insert into pawl.process_response (id, kind, name, key, number, payload, at)
select id, 'reply', 'invoice', 'k', nextval('pawl.response_seq'), '{"status": "FAILED"}', pawl.now() from leased;
update pawl.process set deadline_due = pawl.now() where id = (select id from leased);
select pawl.process_deadlines_pass(100, pawl.now());
select pawl.process_status(id) from leased;
select verdict from pawl.process_retry(array[process(1)], null, 'ann');
select s.step, s.error, s.is_reset from pawl.process_step s order by s.number;
select r.kind, r.name, r.is_aside from pawl.process_response r where r.name = 'invoice';

-- A reply without a record is set aside with its step, also if its command was deleted: it is not taken for the outcome of the next run.
select version from pawl.process_define('shop', 'd', '{"type": "d", "domain": "shop", "steps": [{"name": "a", "exec": "true"}, {"name": "p", "parallel": {
  "x": [{"name": "mail", "command": {"domain": "mailer", "type": "m"}}], "y": [{"name": "b", "exec": "false"}]}}]}', null, 'troubleshoot', 'ann', '[
  {"name": "a", "kind": "exec", "acts": true}, {"name": "p", "kind": "parallel", "last": 3},
  {"name": "mail", "kind": "command", "acts": true, "list": "/p/x", "position": 0, "parent": "p", "sends": "\"m\" to domain \"mailer\""},
  {"name": "b", "kind": "exec", "acts": true, "list": "/p/y", "position": 0, "parent": "p"}]');
select pawl.start('d', '{}', process(2), 'shop') is not null as started;
truncate leased;
insert into leased select * from claim_one('process:shop');
select record(id, token, 'a', null, null) from leased;
select is_new from leased, pawl.send_items(false, 'mailer', '{m}', '{"{}"}', array[process(3)], null, null, null, array[format('response:{"process": %s, "step": "mail"}', id)], null, null, null);
select w.verdict from leased l, pawl.process_write(array[l.id], array[l.token], '{"{\"step\": \"b\"}"}', null, '{no}', null, null, null, null, null,
    null, null, null, '{fail}', null, '{no}') w;
select s.status from claim_one('mailer') c, pawl.settle(array[c.id], array[c.token], '{complete}') s;
select pawl.least_age_set('commands', '0');
select gone from pawl.prune_commands(1000, interval '0 s', null);
select count(*) as commands from pawl.command where command_id = process(3);
select verdict from pawl.process_retry(array[process(2)], null, 'ann', null, 'a', process(4));
select r.name, r.is_aside, r.payload ->> 'status' as status from pawl.process_response r join leased l on l.id = r.id;
select string_agg(pawl.record_text(s.step, s.item, s.undo, s.kind, s.aside), ', ' order by s.step) as records from pawl.process_step s join leased l on l.id = s.id;

-- Two transactions that are the first to send to a domain at the same time write a row of its name each.
insert into pawl.domain_name (id, name) select id, name from pawl.domain_name where name = 'process:shop';
select version from pawl.process_define('shop', 'new', '{"type": "new", "domain": "shop", "steps": [{"name": "a", "set": {"a": 1}}]}', null, 'troubleshoot', 'ann', '[{"name": "a", "kind": "set"}]');
