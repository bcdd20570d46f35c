-- reserved.sql - what bots reserve of the bus: the domains of their updates and messages. sql/app/reserved.sql joins it.

create or replace function pawl.telegram_domains ()
  returns table (pattern text, commands text, refuses_replies boolean, sender text)
  language sql immutable
as $$
  -- An update acts with the rights of the person that it names: only a session that may run bots sends one.
  select '^telegram:[0-9]+$', 'updates of a bot', true, 'pawl.telegram_lease(bigint,uuid,integer,integer)'
  union all
  select '^telegram:[0-9]+:outbox$', 'messages of a bot', false, null
$$;
