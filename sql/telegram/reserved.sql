-- reserved.sql - what bots reserve of the bus: the domains of their updates and messages. sql/app/reserved.sql joins it.

create or replace function pawl.telegram_domains ()
  returns table (pattern text, commands text, refuses_replies boolean)
  language sql immutable
as $$
  select '^telegram:[0-9]+$', 'updates of a bot', true
  union all
  select '^telegram:[0-9]+:outbox$', 'messages of a bot', false
$$;
