-- Count a command.
select * from rating.usage_add($1, $2)
