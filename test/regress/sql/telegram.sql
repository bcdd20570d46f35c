-- telegram.sql - what all processes of a bot share: the lease, the outbox, its pace; and commands that are postponed.

-- One holder at a time. A lease that has ended, or was given back, is another's.
create function lease (p_holder integer, p_ms integer default 60000) returns boolean language sql as
  $$ select is_held from pawl.telegram_lease(7, lpad(p_holder::text, 32, '0')::uuid, p_ms, 1000) $$;
select lease(1), lease(2), lease(1);
select pawl.task_release(lpad('2', 32, '0')::uuid);
select lease(2);
select pawl.task_release(lpad('1', 32, '0')::uuid);
select lease(2), lease(1);
update pawl.task set until = pawl.now() - interval '1 ms';
select lease(1), lease(2);
select pawl.telegram_name(7, 'the_bot');
select username, waiting from pawl.telegram_lease(7, lpad('2', 32, '0')::uuid, 1000, 1000);

-- Refused: null, and what is out of range.
select pawl.telegram_lease(null, gen_random_uuid(), 1000, 1000);
select pawl.telegram_lease(7, null, 1000, 1000);
select pawl.telegram_lease(7, gen_random_uuid(), null, 1000);
select pawl.telegram_lease(7, gen_random_uuid(), 0, 1000);
select pawl.telegram_lease(7, gen_random_uuid(), 1000, null);
select pawl.telegram_name(7, null);
select pawl.telegram_moved(7, null, 1);
select pawl.telegram_moved(7, 1, 1);
select pawl.telegram_prune(null, 1);
select pawl.telegram_limited(7, null, 0);
select pawl.telegram_limited(7, 1, null);
select pawl.telegram_limited(7, 1, -1);
select pawl.telegram_ask_limited(7, null);
select pawl.telegram_ask_limited(7, -1);
select pawl.telegram_member_put(7, null, 1, 'member');
select pawl.telegram_member_put(7, 1, null, 'member');
select pawl.telegram_member_put(7, 1, 1, null);
select pawl.telegram_pace(7, null, 1000, 20, 30, 400);
select pawl.telegram_pace(7, '{null}', 1000, 20, 30, 400);
select pawl.telegram_pace(7, '[0:0]={1}', 1000, 20, 30, 400);
select pawl.telegram_pace(7, '{{1}}', 1000, 20, 30, 400);
select pawl.telegram_pace(7, '{1}', null, 20, 30, 400);
select pawl.telegram_pace(7, '{1}', 1000, 0, 30, 400);
select pawl.telegram_pace(7, '{1}', 1000, 20, 0, 400);
select pawl.telegram_pace(7, '{1}', 1000, 20, 30, null);
select pawl.telegram_put(7, null, '{1}', '{send}', '{"{}"}', 10);
select pawl.telegram_put(7, array[gen_random_uuid()], '{1,2}', '{send}', '{"{}"}', 10);
select pawl.telegram_put(7, array[null::uuid], '{1}', '{send}', '{"{}"}', 10);
select pawl.telegram_put(7, array[gen_random_uuid()], '{null}', '{send}', '{"{}"}', 10);
select pawl.telegram_put(7, array[gen_random_uuid()], '{1}', '{send}', '{"{}"}', null);

-- The end of a list is refused, answers to buttons (chat 0) have a limit of their own; the same ids again are the same messages.
create function put (p_room integer) returns integer language sql as $$
  select pawl.telegram_put(7, array_agg(lpad(n::text, 32, '0')::uuid order by n), array_agg(case when n = 4 then 0 else -5 end order by n),
    array_agg(case when n = 4 then 'answer' else 'send' end order by n), array_agg(to_jsonb(n) order by n), p_room)
  from generate_series(1, 5) n $$;
select put(2);
select put(2), pawl.telegram_waiting(7, 1000), pawl.telegram_waiting(7, 2);
select c.payload, c.type, c.order_key, c.priority, c.max_attempts from pawl.command c order by c.id;
select pawl.telegram_waiting(8, 1000);

-- Of answers to buttons 200 wait, and none counts as a waiting message. Bot 12: 199, then two and a message, then one a minute later.
select pawl.telegram_put(12, array_agg(gen_random_uuid()), array_agg(0::bigint), array_agg('answer'::text), array_agg(to_jsonb(n)), 0) from generate_series(1, 199) n;
select pawl.telegram_put(12, array[gen_random_uuid(), gen_random_uuid(), gen_random_uuid()], '{0,31,0}', '{answer,send,answer}', '{1,2,3}', 10), pawl.telegram_waiting(12, 1000);
select pawl.telegram_waiting(12, 1000);
select c.max_attempts, count(*) from pawl.command c where c.domain_id = pawl.domain_find('telegram:12:outbox') group by 1 order by 1;
with moved as (delete from pawl.ready r where r.domain_id = pawl.domain_find('telegram:12:outbox') returning r.*)
insert into pawl.delayed (id, due, domain_id, priority, attempt, max_attempts, extras)
select id, pawl.now() + interval '1 min', domain_id, priority, attempt, max_attempts, extras from moved;
select pawl.telegram_waiting(12, 1000), pawl.telegram_put(12, array[gen_random_uuid()], '{0}', '{answer}', '{1}', 10);
-- A 429 for one of them holds up all, and those whose minute would be over are dropped.
create function answer_turn (p_wait_max integer default 400) returns text language sql as
  $$ select concat_ws(' ', t.chat_id, t.wait_ms > 400, t.is_reserved, t.refusals, t.is_expired)
     from pawl.telegram_pace_answer(12, (select min(id) from pawl.command where domain_id = pawl.domain_find('telegram:12:outbox')), 10000, p_wait_max) t $$;
select answer_turn();
select pawl.telegram_limited(12, 0, 40000);
select answer_turn();
select pawl.telegram_limited(12, 0, 70000);
select answer_turn();
select pawl.telegram_pace_answer(12, null, 30, 400);
delete from pawl.telegram_chat where bot_id = 12;
delete from pawl.delayed d where d.domain_id = pawl.domain_find('telegram:12:outbox');

-- A chat has a share of the outbox; what is beyond is refused for it alone. Bot 11: 260 messages to one chat, 1 to another, then 1 each.
select pawl.telegram_put(11, array_agg(gen_random_uuid()), array_agg(case when n = 261 then 22 else 21 end), array_agg('send'::text), array_agg(to_jsonb(n)), 1000)
from generate_series(1, 261) n;
select pawl.telegram_put(11, array[gen_random_uuid(), gen_random_uuid()], '{21,22}', '{send,send}', '{1,2}', 1000);
select order_key, count(*), max(payload::integer) from pawl.command where order_key in ('21', '22') group by order_key order by order_key;
-- Also of what waits for its turn.
with moved as (delete from pawl.ready r where r.order_key = '21' and r.id <> (select min(id) from pawl.ready where order_key = '21') returning r.domain_id, r.order_key, r.id)
insert into pawl.parked (domain_id, order_key, id) select domain_id, order_key, id from moved;
select pawl.telegram_put(11, array[gen_random_uuid()], '{21}', '{send}', '{1}', 1000), pawl.telegram_put(11, array[gen_random_uuid()], '{23}', '{send}', '{1}', 1000);

-- Confirmations have a key and a share of their own, and are sent first; a file has few attempts. Bot 14.
create function put_all (p_payload jsonb, p_count integer, p_capacity integer default 1000, p_type text default 'send') returns integer language sql as $$
  select pawl.telegram_put(14, array_agg(gen_random_uuid()), array_agg(-31::bigint), array_agg(p_type), array_agg(p_payload), p_capacity)
  from generate_series(1, p_count) n $$;
select put_all('{}', 251), put_all('{"first": true}', 249), put_all('{"first": true}', 1);
select put_all('{"first": true}', 1);
select put_all('{"first": true}', 1, 0);
select put_all('{"first": 1}', 1), put_all('{"first": "true"}', 1);
select order_key, priority, count(*), max(max_attempts) from pawl.command where domain_id = pawl.domain_find('telegram:14:outbox') group by 1, 2 order by 1, 2;
delete from pawl.ready where domain_id = pawl.domain_find('telegram:14:outbox');
select put_all('{}', 1, 1000, 'photo'), put_all('{}', 1, 1000, 'document');
select type, max_attempts from pawl.command where domain_id = pawl.domain_find('telegram:14:outbox') order by id desc limit 2;
-- While ten messages of a chat wait, a list with a notice has its messages to that chat refused; edits and confirmations are queued. The notice is once.
create function put_read (p_type text, p_payload jsonb, p_chat bigint default -31) returns integer language sql as $$
  select pawl.telegram_put(14, array[gen_random_uuid(), lpad('77', 32, '0')::uuid], array[p_chat, -31], array[p_type, 'send'],
    array[p_payload, '{"busy": true}'], 1000) $$;
select put_all('{}', 7), put_read('send', '{"n": 10}');
select put_read('send', '{"n": 11}'), put_read('send', '{"n": 12}');
select put_read('edit', '{"n": 13}'), put_read('send', '{"n": 14, "first": true}'), put_read('send', '{"n": 15}', -32);
select c.order_key, c.priority, c.payload from pawl.command c join pawl.ready r using (id)
where c.domain_id = pawl.domain_find('telegram:14:outbox') and c.payload <> '{}' order by c.id;
-- The others of a chat wait while a confirmation does, and until it is due.
create function turn (p_chat bigint, p_is_first boolean) returns text language sql as
  $$ select concat_ws(' ', t.chat_id, case when t.wait_ms > 30000 then 'long' when t.wait_ms > 1000 then 'waits' else 'soon' end, t.is_reserved)
     from pawl.telegram_pace_message(14, p_chat, p_is_first, 2000, 20, 10000, 400) t $$;
select turn(-31, false), turn(-31, true), turn(-32, false);
with moved as (delete from pawl.ready r where r.domain_id = pawl.domain_find('telegram:14:outbox') and r.priority = 6 returning r.*),
     taken as (insert into pawl.order_turn (domain_id, order_key, id, low) select domain_id, order_key, id, id from moved)
insert into pawl.delayed (id, due, domain_id, priority, attempt, max_attempts, extras)
select id, pawl.now() + interval '1 min', domain_id, priority, attempt, max_attempts, extras from moved;
select turn(-31, false);
select pawl.telegram_pace_message(14, null, true, 1000, 20, 30, 400);
select pawl.telegram_pace_message(14, -31, null, 1000, 20, 30, 400);
-- An edit is not sent if a later one of the same message waits.
select put_all('{"message_id": 5}', 2, 1000, 'edit'), put_all('{"message_id": 6}', 1, 1000, 'edit'), put_all('{"message_id": 5}', 1);
select pawl.telegram_superseded(14, c.id, (c.payload->'message_id')::bigint) from pawl.command c
where c.domain_id = pawl.domain_find('telegram:14:outbox') and c.payload ? 'message_id' and c.type = 'edit' order by c.id;
delete from pawl.delayed d where d.domain_id = pawl.domain_find('telegram:14:outbox');
delete from pawl.telegram_chat where bot_id = 14;

-- A group that has moved: messages to it are ordered with those to where it is.
select pawl.telegram_moved(7, -6, -1006), pawl.telegram_moved(7, -6, -1006);
select pawl.telegram_put(7, array[lpad('9', 32, '0')::uuid], '{-6}', '{send}', '{"{}"}', 10);
select order_key from pawl.command order by id desc limit 1;
select chat_id from pawl.telegram_pace(7, '{-6}', 1000, 20, 30, 400);

-- Pace. A time that is near is reserved; one that is not is only returned. Chats do not wait for each other.
select ord, chat_id, wait_ms > 400 as is_later, is_reserved from pawl.telegram_pace(9, '{1,1,2,3}', 60000, 20, 10000, 400) order by ord;
select chat_id, is_reserved from pawl.telegram_pace(9, '{2,6,7}', 0, 20, 10000, 60000) order by ord; -- 6 and 7 are not behind 2
select count(*) filter (where wait_ms < 1000) as soon from pawl.telegram_pace(9, '{6,7}', 0, 20, 10000, 60000);
-- All chats together have a rate too.
select ord, round(wait_ms - first_value(wait_ms) over (order by ord), -2) as after_first_ms from pawl.telegram_pace(10, '{1,2,3}', 0, 20, 1, 60000) order by ord;
-- After a 429 a chat waits as long as the server said, others do not.
select pawl.telegram_limited(9, 4, 70000);
select chat_id, wait_ms > 40000 as is_later, is_reserved, refusals from pawl.telegram_pace(9, '{4,5}', 300, 20, 10000, 400) order by ord;
select pawl.telegram_delivered(9, 4, 77, 'match:1'), pawl.telegram_delivered(9, 4, 77, 'match:2');
select refusals from pawl.telegram_chat where bot_id = 9 and chat_id = 4;
select pawl.telegram_reference(9, 4, 77), pawl.telegram_reference(9, 4, 78);

-- Retention: references by age, chats without news.
update pawl.telegram_sent set sent_at = pawl.now() - interval '91 days';
update pawl.telegram_chat set next_free = pawl.now() - interval '2 days';
select pawl.telegram_prune(90, 1000);
select chat_id, moved_to from pawl.telegram_chat;

-- A command that is postponed is due later, and its attempt does not count. Its key is kept.
create function claim_all () returns table (id bigint, token bigint) language sql as $$
  select c.id, c.token from pawl.claim(pawl.domain_find('later'), 100, 60000, array_fill(0::bigint, array[10]), null, 'w') c $$;
select count(*) from pawl.send('later', '{a,a}'::text[], '{1,2}'::jsonb[], p_order_keys => '{k,k}');
create temp table taken as select * from claim_all();
select count(*) from taken;
select pawl.postpone(array[t.id], array[t.token + 1], '{1000}', 'x') from taken t;
select pawl.postpone(array[t.id], array[t.token], '{60000}', 'the server asks for fewer') from taken t;
select pawl.postpone(array[t.id], array[t.token], '{60000}', 'again') from taken t;
select d.attempt, d.due > pawl.now() + interval '20 s' as is_later from pawl.delayed d;
select count(*) from claim_all();
select e.event, e.attempt, e.details from pawl.event e join taken t on t.id = e.id order by e.at, e.event;
select pawl.postpone(null, '{1}', '{1}', 'x');
select pawl.postpone('{1}', '{1}', null, 'x');
select pawl.postpone('{1}', '{1}', '{null}', 'x');
select pawl.postpone('{1}', '{1}', '{-1}', 'x');
select pawl.postpone('{1}', '{1}', '{1,2}', 'x');

-- Dead letters of updates: kept once, resolved with the update, failed when it was given up.
select pawl.bot_letter_keep(null, 1, gen_random_uuid(), 'match_undo', '{}', 'e', 'c');
select pawl.bot_letter_keep(9, 0, gen_random_uuid(), 'match_undo', '{}', 'e', 'c');
select pawl.bot_letter_keep(9, 1, gen_random_uuid(), 'other', '{}', 'e', 'c');
select pawl.bot_letter_keep(9, 1, gen_random_uuid(), null, '{}', 'e', 'c');
select pawl.bot_letter_keep(9, 1, null, 'match_undo', '{}', 'e', 'c');
select pawl.bot_letter_keep(9, 1, gen_random_uuid(), 'match_undo', null, 'e', 'c');
select pawl.bot_letter_end(9, null, null);
select pawl.bot_letter_done(9, null);
select pawl.send('telegram:9', 'update', '{}', p_command_id => '00000000-0000-4000-8000-000000000001') is not null as sent;
select pawl.bot_letter_keep(9, 1, '00000000-0000-4000-8000-000000000001', 'match_registration', '{}', 'away', '08006') as waits;
select pawl.bot_letter_keep(9, 1, '00000000-0000-4000-8000-000000000001', 'match_registration', '{}', 'again', '08006') as waits;
select operation_key, error_message, status from pawl.failed_operations where operation_key like '9:%' order by id;
select pawl.bot_letter_done(9, '00000000-0000-4000-8000-000000000001') as done;
select pawl.bot_letter_end(9, 1, 'given up');
select pawl.bot_letter_end(9, 1, null);
select operation_key, error_message, status, retry_count from pawl.failed_operations where operation_key like '9:%' order by id;
-- Of an update that has ended meanwhile, or is not there any more: resolved.
select pawl.bot_letter_keep(9, 2, '00000000-0000-4000-8000-000000000002', 'match_undo', '{}', 'away', '08006') as waits;
select operation_key, status from pawl.failed_operations where operation_key = '9:2';

-- What the server said about a member is kept; a 429 holds up questions of this bot, and no message.
select m.* from pawl.telegram_member_get(13, -5, 6) m;
select pawl.telegram_member_put(13, -5, 6, 'administrator'), pawl.telegram_member_put(13, -5, 7, '');
select u.id, m.* from generate_series(6, 8) u (id), pawl.telegram_member_get(13, -5, u.id) m order by u.id;
select until > pawl.now() + interval '1 min' as is_long from pawl.telegram_member where bot_id = 13 order by user_id;
select string_agg(pawl.telegram_ask_limited(13, 0)::text, ' ') from generate_series(1, 8);
select pawl.telegram_ask_limited(13, 90000);
select u.id, m.* from generate_series(12, 13) u (id), pawl.telegram_member_get(u.id, -5, 6) m order by u.id;
select wait_ms > 400 as is_later from pawl.telegram_pace(13, '{-5}', 0, 20, 30, 400);
select pawl.telegram_member_forget(13, -5, 6);
update pawl.telegram_pace set ask_free = pawl.now() where bot_id = 13;
select m.* from pawl.telegram_member_get(13, -5, 6) m;
select pawl.telegram_member_put(13, -5, 6, 'left');
select ask_refusals from pawl.telegram_pace where bot_id = 13;

-- Files are stored apart from their messages, which are kept for weeks, and go when these have ended. What is refused leaves none.
select pawl.telegram_put(17, array[md5('f1')::uuid, md5('f2')::uuid, md5('f3')::uuid], '{-1,-1,-1}', '{photo,send,document}',
  array['{"chat_id": -1, "file": "QUJD", "file_name": "a.png"}', '{"chat_id": -1, "text": "x"}', '{"chat_id": -1, "file": "REVG", "file_name": "b.csv"}']::jsonb[], 2);
select c.type, c.payload, pawl.telegram_file(17, c.command_id) from pawl.command c
where c.domain_id = pawl.domain_find('telegram:17:outbox') order by c.id;
select pawl.telegram_file(17, md5('f2')::uuid), pawl.telegram_file(18, md5('f1')::uuid), pawl.telegram_file(17, null);
select pawl.telegram_prune(30, 100) >= 0, count(*) from pawl.telegram_file;
select count(*) from pawl.command_list('telegram:17:outbox', 'PENDING', null, null, 100);
select c.verdict from pawl.cancel(array[md5('f1')::uuid]) c;
select pawl.telegram_prune(30, 100) >= 1;
select count(*) from pawl.telegram_file;

-- Three chats that get a 429 within a second: it is the bot that the server limits, and all wait. One chat that gets three is one, and more than a minute is a
-- chat's own time.
create or replace function pawl.now () returns timestamptz language sql volatile as $$ select timestamptz '2030-01-01 00:00 UTC' $$;
select count(pawl.telegram_limited(18, c, 30000)) from unnest('{-1,-1,-1,-2}'::bigint[]) c;
select wait_ms from pawl.telegram_pace(18, '{-9}', 0, 20, 30, 400);
select pawl.telegram_limited(18, -3, 30000);
select wait_ms from pawl.telegram_pace(18, '{-9}', 0, 20, 30, 400);
select count(pawl.telegram_limited(19, c, 30000)) from unnest('{-1,-2}'::bigint[]) c;
create or replace function pawl.now () returns timestamptz language sql volatile as $$ select timestamptz '2030-01-01 00:00:02 UTC' $$;
select count(pawl.telegram_limited(19, c, 60000)) from unnest('{-3,-4}'::bigint[]) c;
select wait_ms from pawl.telegram_pace(19, '{-9}', 0, 20, 30, 400);
select pawl.telegram_limited(19, -5, 3600000);
select wait_ms from pawl.telegram_pace(19, '{-9}', 0, 20, 30, 400);
select pawl.telegram_limited(19, 0, 60000);
select wait_ms from pawl.telegram_pace(19, '{-9}', 0, 20, 30, 400);
