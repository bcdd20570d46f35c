-- Write matches. Authors and times as texts, because they may be null.
select * from rating.matches_write($1, $2, $3, $4::text[]::bigint[], $5, $6, $7, $8, $9::double precision[], $10::double precision[],
  $11::double precision[], $12::double precision[], $13::double precision[], $14::double precision[],
  array(select to_timestamp(t::double precision) from unnest($15::text[]) with ordinality u (t, n) order by n))
