-- process_signal.sql - many responses in one call: a verdict each, the same as of one call each.
set client_min_messages = warning; -- a start of a type that nothing runs says so

create function number (p_n integer) returns uuid language sql immutable as $$
  select ('018f0000-0000-7000-8000-' || lpad(p_n::text, 12, '0'))::uuid
$$;
create function sent (p_ns integer[], p_names text[], p_payloads jsonb[], p_keys text[], p_domains text[] default null, p_steps text[] default null)
  returns table (ord integer, verdict text, refusal text) language sql as $$
  select s.* from pawl.process_signal(array(select number(n) from unnest(p_ns) with ordinality u (n, o) order by o), p_names, p_payloads, p_keys, p_domains, 'ann', p_steps) s
$$;
select count(pawl.start('order', '{}', number(n), 'shop')) from generate_series(1, 4) n;
select count(pawl.start('order', '{}', number(4), 'yard'));
-- 1 and 2 wait, 3 has ended.
select w.verdict
from (select array_agg(c.id order by c.id) as ids, array_agg(c.token order by c.id) as tokens
      from pawl.claim(pawl.domain_find('process:shop'), 3, 60000, array_fill(0::bigint, array[10]), null, 'w') c) l,
     pawl.process_write(l.ids, l.tokens, null, null, null, null, null, null, null, '{WAITING_FOR_ASYNC,WAITING_FOR_ASYNC,NULL}',
    '{"{\"step\": \"paid\"}","{\"step\": \"paid\"}",NULL}', '{"[{\"kind\": \"signal\", \"name\": \"payment\",
    \"count\": 1}]","[{\"kind\": \"signal\", \"name\": \"payment\", \"count\": 3}]",NULL}',
    array_fill(pawl.micros(pawl.now() + interval '1 hour'), array[3]), '{NULL,NULL,complete}', null, null) w
order by w.ord;

-- One resumes, two of three do not, the same key again is known or reused, one is late, one is unknown, one is in two domains.
select * from sent('{1,2,2,2,2,3,9,4,4}', array_fill('payment'::text, array[9]), '{"{\"a\": 1}","{\"b\": 2}","{\"b\": 2}","{\"b\": 3}",7,"{\"late\": true}","{}","{}","{}"}',
  '{k1,k1,k1,k1,k2,k1,k1,k1,k1}', '{NULL,NULL,NULL,NULL,shop,NULL,NULL,NULL,yard}');
select number, state, version, wait, response_count
from (select row_number() over (order by p.id) as number, p.* from pawl.process p) p order by number;
select row_number() over (order by r.number), r.name, r.key, r.payload, r.actor, r.met, r.resumed from pawl.process_response r order by r.number;
-- The same call again changes nothing; the third response resumes.
select string_agg(verdict, ' ' order by ord) from sent('{1,2,2,3}', array_fill('payment'::text, array[4]), '{"{\"a\": 1}","{\"b\": 2}",7,"{\"late\": true}"}', '{k1,k1,k2,k1}');
select string_agg(verdict, ' ' order by ord) from sent('{2,1}', '{payment,other}', '{"{\"c\": 3}","{}"}', '{k3,k1}');
select count(*) as waiting from pawl.process where wait is not null;
-- Too large: all items of the process, and no others.
select string_agg(verdict, ' ' order by ord)
from sent('{1,2,1}', '{x,x,x}', array[to_jsonb(repeat('x', 1100000)), '{}', '{}'], '{k9,k9,k10}');
-- At the limit, what is stored already is a repetition, and what is new is too large.
update pawl.process set response_count = 10000 where id = (select c.id from pawl.command c where c.command_id = number(1));
select string_agg(verdict, ' ' order by ord) from sent('{1}', '{payment}', '{"{\"a\": 1}"}', '{k1}');
select string_agg(verdict, ' ' order by ord) from sent('{1,1}', '{payment,x}', '{"{\"a\": 1}","{}"}', '{k1,k11}');
update pawl.process set response_count = 2 where id = (select c.id from pawl.command c where c.command_id = number(1));
select * from sent('{}', '{}', '{}', '{}');

-- An item that is no response has a verdict, with the reason, and the others are stored: null, names and keys that are none, a step that is none.
select * from sent('{1,NULL,1,1,1,1,1,1,9,1}', '{good,a,NULL,a,$cancel,a,a,a,a,last}', '{"{}","{}","{}",NULL,"{}","{}","{}","{}","{}","{}"}',
  array['k', 'k', 'k', 'k', 'k', null, '', 'k', 'k', repeat('k', 201)], null, '{NULL,NULL,NULL,NULL,NULL,NULL,NULL,"[1]",NULL,NULL}');
select row_number() over (order by r.number), r.name, r.key from pawl.process_response r where name in ('good', 'a', 'last');

-- Arrays that are none or odd, and too many items.
select pawl.process_signal(null, '{a}', '{"{}"}', '{k}');
select sent('{1}', null, '{"{}"}', '{k}');
select sent('{1}', '{a}', null, '{k}');
select sent('{1}', '{a}', '{"{}"}', null);
select sent('{1,2}', '{a}', '{"{}","{}"}', '{k,k}');
select sent('{1}', '[0:0]={a}', '{"{}"}', '{k}');
select sent('{1}', '{{a}}', '{"{}"}', '{k}');
select sent('{1}', '{a}', '{"{}"}', '{k}', '{shop,shop}');
select pawl.process_signal(array_fill(number(1), array[1001]), array_fill('a'::text, array[1001]), array_fill('{}'::jsonb, array[1001]), array_fill('k'::text, array[1001]));
select count(*) from pawl.process_response where name not in ('payment', 'other', 'x', 'good');
