-- dead_letter_forward.sql - $1 limit, $2 tries, $3 milliseconds until the next. Columns: count, how many were sent.
select pawl.dead_letter_forward($1::integer, $2::integer, $3::integer)::bigint as count
