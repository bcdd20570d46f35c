-- What an application may leave out when it calls a function.
select pawl.send('shop', 'charge', p_command_id => '018f0000-0000-7000-8000-000000000001') is not null as sent,
       pawl.send('yard', 'dig', p_command_id => '018f0000-0000-7000-8000-000000000002') is not null as sent_too;

-- Lists: all of it, newest first.
select domain, type, status from pawl.command_list();
select domain, type from pawl.command_list('shop');
select domain, type from pawl.command_list(p_type => 'dig', p_limit => 1);
select count(*) = 1 as older from pawl.command_list(p_before => (select max(id) from pawl.command_list()));
select pawl.command_count(), pawl.command_count('shop'), pawl.command_count(p_status => 'COMPLETED');
select pawl.command_show('018f0000-0000-7000-8000-000000000001') ->> 'domain' as domain;

-- Decisions: the session's user is the operator.
select ord, verdict from pawl.cancel(array['018f0000-0000-7000-8000-000000000001']::uuid[]);
select a.actor = session_user as by_me from pawl.audit a where a.event = 'CANCELED';
select ord, verdict from pawl.tsq_decide(array['018f0000-0000-7000-8000-000000000002']::uuid[], 'retry');

-- Batches and dead letters.
select batch_id is not null as made, is_new from pawl.batch_new();
select is_new from pawl.dead_letter_put(array['charge'], array['order-7'], array['{}']::jsonb[], array['no answer'], array['timed-out']);
select count(*) from pawl.dead_letter_claim(array['charge']); -- not due yet
select moved from pawl.dead_letter_retry(array(select id from pawl.failed_operations));
select operation_key, lease from pawl.dead_letter_claim(array['charge']);
select settled, status
from pawl.dead_letter_settle(array(select id from pawl.failed_operations), array[1], array[true], array[null], array[null]);

-- Wallets.
select owner, asset, floor, is_new from wallet.open(array['ann']);
select refusal, balance
from wallet.post(array['topup'], array['018f0000-0000-7000-8000-00000000000a']::uuid[], array['ann'], array[5]);
select owner, balance from wallet.get(array['ann']);
select kind, amount from wallet.entries('ann');
select kind, amount from wallet.statement('ann');
select balance from wallet.balance_at('ann', pawl.now());
select count(*) from wallet.verify();
