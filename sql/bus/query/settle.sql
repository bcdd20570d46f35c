-- How leased commands ended; a row for each, in order. wake: domains in which commands were queued by it, joined by commas.
-- $1 ids, $2 tokens, $3 outcomes; $4 results, $5 errors, $6 delays in ms as texts, $7 domains, $8 command ids: null when no
-- command has one; $9 true: do not wait for leases that another transaction has locked, their status is BUSY
select s.ord, s.settled, s.again, s.status, nullif(current_setting('pawl.wake', true), '') as wake
from pawl.settle_items($9::boolean, $1::bigint[], $2::bigint[], $3::text[], $4::jsonb[], $5::text[], $6::text[]::bigint[], $7::text[],
  $8::uuid[]) s
