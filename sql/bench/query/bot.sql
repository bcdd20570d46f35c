-- What updates of bot $1 have led to: matches, and messages that wait in the outbox.
select (select count(*) from rating.match) as matches,
       (select count(*) from pawl.command c join pawl.domain d on d.id = c.domain_id where d.name = 'telegram:' || $1::bigint || ':outbox') as messages
