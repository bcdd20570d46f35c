-- Read what registrations need. Times in seconds, as texts, because they may be null.
select * from rating.matches_read($1, $2, $3, $4, $5, $6,
  array(select to_timestamp(t::double precision) from unnest($7::text[]) with ordinality u (t, n) order by n))
