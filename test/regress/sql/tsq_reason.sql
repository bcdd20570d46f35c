-- tsq_reason.sql - an operator's reason is in the audit; a command that was completed has no error.
select count(*) from pawl.send('shop', '{a,b}'::text[], '{1,2}'::jsonb[],
  '{00000000-0000-4000-8000-00000000000a,00000000-0000-4000-8000-00000000000b}', p_reply_to => '{answers,answers}');
select s.status from (select array_agg(c.id) as ids, array_agg(c.token) as tokens
                      from pawl.claim(pawl.domain_find('shop'), 2, 60000, array_fill(0::bigint, array[10]), null, 'w') c) c,
  pawl.settle(c.ids, c.tokens, '{fail,fail}', null, '{broken,broken}') s;
select verdict from pawl.tsq_decide('{00000000-0000-4000-8000-00000000000a}', 'complete', 'ann', 'done by hand', '{"n": 1}');
select verdict from pawl.tsq_decide('{00000000-0000-4000-8000-00000000000b}', 'cancel', 'ann', 'not wanted');
select message ->> 'status' as status, message -> 'result' as result, message ->> 'error' as error from pgmq.q_answers order by msg_id;
select type, status, error from pawl.command_list();
select pawl.command_show(command_id) ->> 'error' as error from pawl.command order by id;
select event, actor, details from pawl.audit where event like 'OPERATOR%' order by id;
-- The same decision again is the same.
select verdict, is_new from pawl.command_decide('{00000000-0000-4000-8000-00000000000a}', null, 'complete', 'ann', 'done by hand', '{"n": 1}');
select verdict, is_new from pawl.command_decide('{00000000-0000-4000-8000-00000000000a}', null, 'complete', 'ann', 'otherwise', '{"n": 1}');
