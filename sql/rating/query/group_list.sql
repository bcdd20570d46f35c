-- Groups in the order of their ids.
select * from rating.group_list($1, $2)
