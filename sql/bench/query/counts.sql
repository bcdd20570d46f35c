-- Where all commands are: the first number is the sum of the others, or something was lost.
select (select count(*) from pawl.command) as sent,
       (select count(*) from pawl.ready) + (select count(*) from pawl.parked) as ready,
       (select count(*) from pawl.delayed) as delayed,
       (select count(*) from pawl.lease) as leased,
       (select count(*) from pawl.outcome where status = 'COMPLETED') as completed
