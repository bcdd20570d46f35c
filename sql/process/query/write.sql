-- What activations write; a row for each, in order. wake: domains in which commands were queued by it, joined by commas.
-- $1 numbers, $2 tokens; the rest null when no item has one: $3 steps, $4 attempts, $5 input hashes, $6 results, $7 errors, $8 starts,
-- $9 patches, $10 versions, $11 phases, $12 waits, $13 steps that wait, $14 responses waited for, $15 due times, $16 outcomes, $17 results and
-- $18 errors of the end
select w.ord, w.verdict, w.version, w.state, w.is_canceled, nullif(current_setting('pawl.wake', true), '') as wake
from pawl.process_write($1::bigint[], $2::bigint[], $3::text[], $4::integer[], $5::text[], $6::jsonb[], $7::text[], $8::bigint[], $9::jsonb[],
  $10::bigint[], $11::text[], $12::text[], $13::text[], $14::jsonb[], $15::bigint[], $16::text[], $17::jsonb[], $18::text[]) w
