-- Times as clocks in the group's time zone show them: $1 group, $2 microseconds. Columns: at, in the order of the array.
select t.at from rating.group_times($1::bigint, $2::bigint[]) t order by t.ord
