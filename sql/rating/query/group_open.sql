-- A group with its settings, created on first sight.
select * from rating.group_open($1, $2, $3)
