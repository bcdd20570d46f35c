-- command_domains.sql - the domains that have a command of this id, by name. $1 command id
select distinct d.name
from pawl.command c
join pawl.domain d on d.id = c.domain_id
where c.command_id = $1
order by d.name
