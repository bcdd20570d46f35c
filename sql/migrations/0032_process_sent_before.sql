-- 0032_process_sent_before.sql - what processes had sent before migration 24, so that it is canceled with them, too.

insert into pawl.process_sent (id, sent_id)
select substring(c.reply_to from '^response:([0-9]+)/')::bigint, c.id
from pawl.command c
where c.reply_to ~ '^response:[0-9]+/' and not exists (select from pawl.outcome o where o.id = c.id)
on conflict do nothing;
