-- Put commands of one domain in the queue; a row for each, in order.
-- $1 domain, $2 types, $3 payloads, $4 command ids, $5 delays in ms, $6 priorities, $7 max attempts, $8 reply queues,
-- $9 correlation ids, $10 batch, $11 actor, $12 true: return BUSY instead of waiting for a concurrent send, $13 order keys; arrays from $5 on may be null;
-- $14 true: the ids were made for this call; if all commands are new, one row with the ord 0 says so;
-- $15 texts for the module that reserves the domain, may be null; $16 true: the id is that of a key, may be null
select s.ord, s.is_new, s.status, s.refusal
from pawl.send_items($12::boolean, $1::text, $2::text[], $3::jsonb[], $4::uuid[], $5::bigint[], $6::integer[]::smallint[],
  $7::integer[]::smallint[], $8::text[], $9::text[], $10::uuid, $11::text, $13::text[],
  $14::boolean, $15::text[], $16::text[]::boolean[]) s
