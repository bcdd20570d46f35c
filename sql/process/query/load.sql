-- What activations continue from; a row for each process whose lease has the token. $1 numbers of processes, $2 tokens, $3 bytes, 0: no limit
select l.id, pawl.micros(pawl.now()) as now_us, coalesce(l.definition_id, 0) as definition_id, l.phase, l.state, l.version, pawl.micros(l.deadline) as deadline_us,
       pawl.micros(l.retried_at) as retried_us, l.secret, (l.responses ->> 'total')::bigint as response_total,
       l.steps, l.responses -> 'items' as responses, nullif(l.responses -> 'open', 'null') as open,
       nullif(l.responses -> 'sent', 'null') as sent, l.is_last, l.deadline_action
from pawl.process_load($1::bigint[], $2::bigint[], $3::bigint) l
