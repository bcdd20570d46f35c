-- Write new states into history rows.
select rating.history_rewrite($1, $2, $3::double precision[], $4::double precision[], $5::double precision[], $6::double precision[],
  $7::double precision[], $8::double precision[])
