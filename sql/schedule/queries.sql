-- queries.sql - the statements that C sends for schedules: `-- name: NAME` begins sql_schedule_NAME.

-- name: create
-- $1 name, $2 domain, $3 type, $4 payload, $5 cron, $6 timezone, $7 every and $8 jitter in ms or null, $9 is it a
-- process,
-- $10 missed, $11 overlap, $12 replace, $13 operator, $14 reason. One column: created, replaced or unchanged.
select pawl.schedule_create(
  $1, $2, $3, $4::jsonb, $5, $6, $7::bigint * interval '1 ms', $9::boolean, coalesce($10, 'once'), coalesce($11,
    'allow'),
  $8::bigint * interval '1 ms', $12::boolean, $13, $14) as done

-- name: list
-- $1 domain, $2 type, $3 status, $4 name, $5 below this id, $6 at most; null: not filtered. is_whole: the payload is
-- shown.
select s.id, s.name, s.domain, s.type, s.is_process, s.cron, s.timezone, s.every_ms, s.jitter_ms::bigint
  as jitter_ms, s.missed,
       s.overlap, s.status, pawl.micros(s.next_at) as next_at, pawl.micros(s.last_at) as last_at, s.last_id,
       pawl.micros(s.skipped_at) as skipped_at, pawl.micros(s.failing_since) as failing_since, s.error,
       pawl.micros(s.created_at) as created_at, pawl.micros(s.changed_at) as changed_at, null::jsonb as payload
from pawl.schedule_list($1, $2, $3, $4, $5::bigint, $6::integer) s

-- name: show
-- $1 name. The same, with the payload.
select s.id, s.name, s.domain, s.type, s.is_process, s.cron, s.timezone, s.every_ms, s.jitter_ms::bigint
  as jitter_ms, s.missed,
       s.overlap, s.status, pawl.micros(s.next_at) as next_at, pawl.micros(s.last_at) as last_at, s.last_id,
       pawl.micros(s.skipped_at) as skipped_at, pawl.micros(s.failing_since) as failing_since, s.error,
       pawl.micros(s.created_at) as created_at, pawl.micros(s.changed_at) as changed_at,
         pawl.schedule_payload(s.name) as payload
from pawl.schedule_list(p_name => $1) s

-- name: next
-- $1 name, $2 how many.
select pawl.micros(n.at) as at, pawl.micros(n.due_at) as due_at, n.local from pawl.schedule_next($1, $2::integer) n

-- name: pause
-- $1 name, $2 operator, $3 reason. One column: did it change something?
select pawl.schedule_pause($1, $2, $3) as changed

-- name: resume
-- As pause.
select pawl.schedule_resume($1, $2, $3) as changed

-- name: delete
-- As pause.
select pawl.schedule_delete($1, $2, $3) as changed

-- name: run
-- $1 name, $2 id of the command, $3 operator, $4 reason. wake: domains in which commands were queued by it, joined by
-- commas.
select r.id, nullif(left(current_setting('pawl.wake', true), 4000), '') as wake
from (select pawl.schedule_run($1, $2::uuid, $3, $4) as id offset 0) r

-- name: fire
-- $1 how many schedules, $2 at most this many ms until the next call. wake: as above.
select f.fired, f.sent, f.failed, f.next_ms, nullif(left(current_setting('pawl.wake', true), 4000), '') as wake
from pawl.schedules_fire($1::integer, $2::integer) f
