-- One response. expected: names, separated by spaces. wake: the domain in which it has queued its process. $1 process id, $2 name, $3 payload, $4 key, $5 domain or null, $6 actor
select s.verdict, nullif(current_setting('pawl.wake', true), '') as wake, s.first, array_to_string(s.expected, ' ') as expected
from pawl.signal_one($1::uuid, $2::text, $3::jsonb, $4::text, $5::text, $6::text) s
