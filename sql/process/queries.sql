-- queries.sql - the statements that C sends for processes: `-- name: NAME` begins sql_process_NAME.

-- name: bind
-- The newest definition for a process without one, as a number; NULL: there is none; -1: another transaction has the
-- process locked. $1 number, $2 token of its lease
select pawl.process_bind($1, $2)::bigint

-- name: cancel
-- $1 process ids, $2 domains or null, $3 operator, $4 reason. wake: domains in which commands were queued, joined by
-- commas; status: the present one of a process about which this call has not decided
select ord, verdict, is_new, decision, operator, decided_at, domains,
       nullif(left(current_setting('pawl.wake', true), 4000), '') as wake,
       case when not is_new then
         pawl.decided_status(($1::uuid[])[ord],
                             (pawl.process_domains(array[($1::uuid[])[ord]], array[($2::text[])[ord]]))[1])
       end as status
from pawl.command_cancel($1, pawl.process_domains($1, $2), $3, $4) order by ord

-- name: claim
-- As claim of the bus, with what activations continue from: of those that have less than $12 bytes together; null
-- columns for the others. $1 to $11: see there
with c as materialized (
  select c.*
  from pawl.claim($1::integer, $2::integer, $3::integer, $4::bigint[], $5::text[], $6::text, $7::text[], $8::integer, $9::integer,
                  p_unflushed => $10::boolean, p_read => $11::integer) with ordinality c
)
select c.id, c.token, c.command_id, c.type, c.payload, c.attempt::integer as attempt,
       c.max_attempts::integer as max_attempts, c.priority::integer as priority, c.pos, c.progress, c.lost,
       pawl.micros(pawl.now()) as now_us, coalesce(l.definition_id, 0) as definition_id, l.phase, l.state,
       l.version, pawl.micros(l.deadline) as deadline_us, pawl.micros(l.retried_at) as retried_us, l.secret,
       (l.responses ->> 'total')::bigint as response_total,
       l.steps, l.responses -> 'items' as responses, nullif(l.responses -> 'open', 'null') as open,
       nullif(l.responses -> 'sent', 'null') as sent, l.is_last, l.deadline_action, l.reason,
       l.life, l.input
from c
left join pawl.process_load(array(select c.id from c), array(select c.token from c), $12::bigint) l
  on l.id = c.id and not l.is_last
order by c.ordinality

-- name: compensate
-- $1 process ids, $2 domains or null, $3 operator, $4 reason. wake: domains in which commands were queued, joined by
-- commas; status: the present one of a process about which this call has not decided
select ord, verdict, is_new, decision, operator, decided_at, domains,
       nullif(left(current_setting('pawl.wake', true), 4000), '') as wake,
       case when not is_new then
         pawl.decided_status(($1::uuid[])[ord],
                             (pawl.process_domains(array[($1::uuid[])[ord]], array[($2::text[])[ord]]))[1])
       end as status
from pawl.process_compensate($1, $2, $3, $4) order by ord

-- name: complete
-- $1 process ids, $2 domains or null, $3 operator, $4 reason, $5 result. wake: domains in which commands were queued,
-- joined by commas; status: the present one of a process about which this call has not decided
select ord, verdict, is_new, decision, operator, decided_at, domains,
       nullif(left(current_setting('pawl.wake', true), 4000), '') as wake,
       case when not is_new then
         pawl.decided_status(($1::uuid[])[ord],
                             (pawl.process_domains(array[($1::uuid[])[ord]], array[($2::text[])[ord]]))[1])
       end as status
from pawl.command_decide($1, pawl.process_domains($1, $2), 'complete', $3, $4, $5) order by ord

-- name: define
-- Store a definition. $1 domain, $2 type, $3 the file, $4 deadline in ms or null, $5 its action, $6 author, $7 its
-- steps
select d.id, d.version, d.is_new from pawl.process_define($1, $2, $3, $4, $5, $6, $7) d

-- name: definition_source
-- The file of a definition. $1 its number
select d.source from pawl.process_definition d where d.id = $1::bigint

-- name: definitions
-- Versions of definitions, newest first. $1 domain, $2 type, $3 version, $4 ids below; null: any. $5 limit, $6 patterns of domains
select d.id::bigint as id, d.domain, d.type, d.version, pawl.micros(d.created_at) as created_at, d.author
from pawl.process_definition d
where ($1::text is null or d.domain = $1::text) and ($2::text is null or d.type = $2::text)
  and ($3::integer is null or d.version = $3::integer) and ($4::bigint is null or d.id < $4::bigint)
  and ($6::text[] is null or pawl.bound_domain(d.domain, $6::text[]))
order by d.id desc
limit $5::integer

-- name: define_notify
-- Notify pods of a definition. $1 channel, $2 domain
select pg_notify($1, $2)::text as value

-- name: hold
-- Waits for the row of the process $1, in the order of all that wait for it, and keeps it until the commit.
select p.id from pawl.process p where p.id = $1 for update

-- name: list
-- Processes, newest first. $1 domain, $2 type, $3 status, $4 step, $5 text, $6 at least so many ms old, $7 ids below,
-- $8 limit; null: any. A row without an id is the end of a page that may have another one behind it. $9 patterns of domains that the caller is bound to,
-- or null.
select coalesce(l.id, 0) as id, l.process_id, l.domain, l.type, l.status, l.step,
       pawl.micros(l.created_at) as created_at, l.error, l.last
from pawl.process_list_bound($9::text[], $1, $2, $3, $4, $5, $6::bigint * interval '1 ms', $7, $8) l

-- name: load
-- What activations continue from; a row for each process whose lease has the token. $1 numbers of processes, $2 tokens,
-- $3 bytes, 0: no limit
select l.id, pawl.micros(pawl.now()) as now_us, coalesce(l.definition_id, 0) as definition_id, l.phase, l.state,
       l.version, pawl.micros(l.deadline) as deadline_us, pawl.micros(l.retried_at) as retried_us, l.secret,
       (l.responses ->> 'total')::bigint as response_total,
       l.steps, l.responses -> 'items' as responses, nullif(l.responses -> 'open', 'null') as open,
       nullif(l.responses -> 'sent', 'null') as sent, l.is_last, l.deadline_action, l.reason,
       l.life, l.input
from pawl.process_load($1::bigint[], $2::bigint[], $3::bigint) l

-- name: move
-- $1 process ids, $2 domains or null, $3 version, $4 operator, $5 reason. domains: of the bus, to be woken
select m.ord, m.verdict, m.is_new, coalesce(m.from_version, 0) as from_version, m.reason, m.operator, m.moved_at,
       m.domains
from pawl.process_move($1, $2, $3, $4, $5) m
order by m.ord

-- name: orphans
-- Cancel what processes that ended have sent. How many of these commands and children are done, as a number
select pawl.process_orphans_cancel()::bigint

-- name: record_count
-- How many records processes have, and the time: see pawl.process_counted. $1 numbers of processes, $2 tokens of their
-- leases, $3 records, $4 counted at most
select pawl.micros(pawl.now()) as now_us, c.secret, c.value, c.is_known, c.is_compensating, c.life
from pawl.process_counted($1::bigint[], $2::bigint[], $3::jsonb[], $4::integer) c

-- name: report
-- As write, for reports, in which many items may be of one process: only the first one of a process that has a state
-- returns it.
select w.ord, w.verdict, w.version,
       case when w.ord = min(w.ord) filter (where w.state is not null) over (partition by u.id)
            then w.state end as state,
       w.is_canceled, nullif(left(current_setting('pawl.wake', true), 4000), '') as wake, w.started
from pawl.process_write($1::bigint[], $2::bigint[], $3::jsonb[], $4::jsonb[], $5::text[], $6::jsonb[], $7::bigint[],
                        $8::text[], $9::text[], $10::text[], $11::jsonb[], $12::jsonb[], $13::bigint[], $14::text[],
                        $15::jsonb[], $16::text[], $17::jsonb) w
join unnest($1::bigint[]) with ordinality u (id, ord) on u.ord = w.ord
order by w.ord

-- name: retry
-- $1 process ids, $2 domains or null, $3 operator, $4 reason, $5 from this step or null, $6 key. wake: domains in which
-- commands were queued, joined by commas; status: the present one of a process about which this call has not decided
select ord, verdict, is_new, decision, operator, decided_at, domains,
       nullif(left(current_setting('pawl.wake', true), 4000), '') as wake,
       case when not is_new then
         pawl.decided_status(($1::uuid[])[ord],
                             (pawl.process_domains(array[($1::uuid[])[ord]], array[($2::text[])[ord]]))[1])
       end as status
from pawl.process_retry($1, $2, $3, $4, $5, $6) order by ord

-- name: show
-- One process as JSON; NULL: unknown. $1 process id, $2 domain or null
select pawl.process_show($1, $2)::text

-- name: signal
-- One response. expected: names, separated by spaces. wake: the domain in which it has queued its process. domain: of
-- the bus. $1 process id, $2 name, $3 payload, $4 key, $5 domain or null, $6 actor, $7 step that it answers or null,
-- $8 free handlers, or null. started: see pawl.resume_started
select s.verdict, nullif(left(current_setting('pawl.wake', true), 4000), '') as wake, s.first,
       array_to_string(s.expected, ' ') as expected, s.domain, s.started
from pawl.signal_one($1::uuid, $2::text, $3::jsonb, $4::text, $5::text, $6::text, $7::text, $8::jsonb) s

-- name: type_note
-- Why nothing runs processes of a type: see pawl.process_type_note. $1 domain, $2 type
select pawl.process_type_note($1, $2) as value

-- name: types
-- The types that files define, by domain, in groups of at most 100, which is what one worker claims. By their first
-- definition: a type that is added changes the last group only. At least one row, without a domain if there are no
-- types. has_orphans: processes have ended before what they have sent
select t.domain, t.number::integer as number, string_agg(t.type, ',' order by t.first) as types, o.has_orphans
from (select exists (select from pawl.process_orphan) as has_orphans) o
left join (
  select d.domain, d.type, d.first, (row_number() over (partition by d.domain order by d.first) - 1) / 100 as number
  from (select d.domain, d.type, min(d.id) as first from pawl.process_definition d group by d.domain, d.type) d
) t on true
group by t.domain, t.number, o.has_orphans
order by t.domain, t.number

-- name: write
-- What activations write; a row for each, in order. wake: domains in which commands were queued by it, joined by
-- commas. $1 numbers, $2 tokens; the rest null when no item has one: $3 records, $4 results, $5 errors, $6 patches,
-- $7 versions, $8 phases, $9 steps that failed, $10 waits, $11 records of the steps that wait, $12 responses waited for,
-- $13 due times, $14 outcomes, $15 results and $16 errors of the end; $17 free handlers, or null. started: see
-- pawl.resume_started
select w.ord, w.verdict, w.version, w.state, w.is_canceled, nullif(left(current_setting('pawl.wake', true), 4000), '') as wake,
       w.started
from pawl.process_write($1::bigint[], $2::bigint[], $3::jsonb[], $4::jsonb[], $5::text[], $6::jsonb[], $7::bigint[],
                        $8::text[], $9::text[], $10::text[], $11::jsonb[], $12::jsonb[], $13::bigint[], $14::text[],
                        $15::jsonb[], $16::text[], $17::jsonb) w
