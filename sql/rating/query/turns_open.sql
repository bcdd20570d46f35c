-- The groups of messages, who was seen, who is meant, the limits. Times in seconds, numbers that may be null as texts.
select * from rating.turns_open($1, $2, $3, array(select to_timestamp(t::double precision) from unnest($4::text[]) with ordinality u (t, n) order by n),
  $5::text[]::bigint[], $6::boolean[], $7, $8, $9, $10, $11::boolean[], $12::boolean[], $13, $14, $15, $16, $17)
