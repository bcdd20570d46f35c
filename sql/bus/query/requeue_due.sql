-- Move up to $1 delayed commands that are due, and as many whose lease ran out, back to the queue.
-- $1 limit, $2 leases that ended before this were read, in microseconds, $3 how far to read ahead in ms, $4 nothing due before
-- this is left, in microseconds. due_left_us: later than looked_us when nothing is left. wake: domains in
-- which commands were queued, joined by commas. is_attached_due: pawl.attached_due has something to do
select b.moved, b.next_ms, pawl.micros(b.looked) as looked_us, coalesce(pawl.micros(b.due_left), pawl.micros(b.looked) + 1) as due_left_us,
       b.running, b.oldest, nullif(current_setting('pawl.wake', true), '') as wake, pawl.attached_is_due(b.looked) as is_attached_due
from pawl.requeue_due($1::integer, timestamptz 'epoch' + $2::bigint * interval '1 us', $3::integer,
  timestamptz 'epoch' + $4::bigint * interval '1 us') b
