-- A group with its settings.
select * from rating.group_get($1)
