-- queries.sql - the statements that C sends for commands: `-- name: NAME` begins sql_bus_NAME.

-- name: attached_due
-- Do up to $1 of what is due by rows that are attached to commands. next_ms: when something is due next, at most $2; 0:
-- there is more to do. wake: domains in which commands were queued by it, joined by commas
select d.next_ms, nullif(left(current_setting('pawl.wake', true), 4000), '') as wake
from pawl.attached_due($1::integer, $2::integer) d (next_ms)

-- name: backlog
-- How much work there is. Columns: as pawl.backlog, parked (counted in the same way), batch_idle_s and
-- reply_queues_percent.
select b.ready, b.delayed, b.leased, b.in_tsq, b.allocated, b.oldest, b.oldest_ms, b.oldest_domain,
       pawl.rows_about((select count(*) from (select from pawl.parked p order by p.domain_id, p.id limit 10000) p),
                       'pawl.parked') as parked,
       pawl.batch_idle_s() as batch_idle_s, pawl.reply_queues_percent() as reply_queues_percent
from pawl.backlog() b

-- name: backlog_domains
-- The same by domain: as pawl.backlog_domains.
select b.domain, b.ready, b.delayed, b.parked, b.leased, b.in_tsq, coalesce(b.oldest_s, 0) as oldest_s
from pawl.backlog_domains() b

-- name: batch_new
-- $1 batch id, $2 name, $3 on_complete. Columns: batch_id, is_new.
select batch_id, is_new
from pawl.batch_new($1, $2, $3)

-- name: batch_list
-- $1 status, $2 name, $3 since, $4 until, $5 ids below, $6 limit; all but the limit may be null. Columns: as
-- pawl.batch_page. A row without an id ends a page behind which there may be more.
select coalesce(b.id, 0) as id, b.searched_to, b.batch_id, b.name, b.status, b.domain, pawl.micros(b.created_at) as created_at,
       pawl.micros(b.sealed_at) as sealed_at, pawl.micros(b.completed_at) as completed_at
from pawl.batch_page($1::text, $2::text, $3::text::timestamptz, $4::text::timestamptz, $5::bigint, $6::integer) b
order by b.searched_to desc

-- name: batch_progress
-- $1 batch id. Columns: as pawl.batch_progress.
select batch_id, name, status, total, pending, in_progress, completed, failed, canceled, in_tsq, created_at,
       completed_at
from pawl.batch_progress($1)

-- name: batch_seal
-- $1 batch id. wake: domains in which commands were queued by it, joined by commas.
select nullif(left(current_setting('pawl.wake', true), 4000), '') as wake from pawl.batch_seal($1)

-- name: bulk_count
-- $1 noun, $2 action, $3 filter. Columns: as pawl.bulk_count.
select b.count, b.is_exact from pawl.bulk_count($1::text, $2::text, jsonb_strip_nulls($3::jsonb)) b

-- name: bulk_show
-- $1 operation id. Columns: as pawl.bulk_show.
select b.operation_id, b.noun, b.action, b.operator, b.reason, b.state, b.error, b.filter, b.refusals, b.matched, b.decided,
       b.known, b.refused, b.locked, pawl.micros(b.created_at) as created_at, pawl.micros(b.ended_at) as ended_at
from pawl.bulk_show($1::uuid) b

-- name: bulk_start
-- $1 operation id or null, $2 noun, $3 action, $4 filter, $5 argument or null, $6 operator, $7 reason or null
select b.operation_id, b.is_new, b.differs
from pawl.bulk_start($1::uuid, $2::text, $3::text, jsonb_strip_nulls($4::jsonb), $5::jsonb, $6::text, $7::text) b

-- name: bulk_skip
-- Give other operations their turn.
select pawl.bulk_skip()

-- name: bulk_step
-- $1 operation id, null: any. wake: domains in which commands were queued by it, joined by commas. No row: none is run.
select b.ended, b.wait_ms, nullif(left(current_setting('pawl.wake', true), 4000), '') as wake
from pawl.bulk_step($1::uuid) b

-- name: claim
-- Lease up to $2 commands of domain number $1 for $3 ms, each priority behind its position in $4.
-- $1 domain, $2 limit, $3 lease, $4 positions, $5 types or null, $6 worker, $7 workers of each or null, $8 how many can be
-- begun at once, $9 how many lost ones the worker has, null when one must be alone, $10 commit without waiting for the flush,
-- $11 how many to read of which none is of the types; then ten rows with null ids have the positions to go on from
select c.id, c.token, c.command_id, c.type, c.payload, c.attempt::integer as attempt,
       c.max_attempts::integer as max_attempts, c.priority::integer as priority, c.pos, c.progress, c.lost
from pawl.claim($1::integer, $2::integer, $3::integer, $4::bigint[], $5::text[], $6::text, $7::text[], $8::integer, $9::integer,
                p_unflushed => $10::boolean, p_read => $11::integer) c

-- name: claim_isolate
-- Move commands whose payload cannot be delivered to the troubleshooting queue; one bigint: how many.
-- $1 domain, $2 how many to read of each priority, $3 types or null
select pawl.claim_isolate($1::integer, $2::integer, $3::text[])::bigint as value

-- name: claimers_ready
-- Which claimers have something to claim; a row for each, at least one, the same three numbers in each. ord: from 1; 0:
-- none has. $1 domains, $2 types joined by line feeds or null, $3 ten low watermarks for each
select w.allocated, w.running, w.oldest, coalesce(f.ord, 0) as ord
from pawl.claimers_ready($1::text[], $2::text[], $3::bigint[]) w
left join unnest(w.ready) f (ord) on true

-- name: command_cancel
-- $1 command ids, $2 domains or null, $3 operator, $4 reason. Columns: as pawl.command_cancel; wake: domains in which
-- commands were queued by it, joined by commas; status: the present one of a command about which this call has not
-- decided.
select ord, verdict, is_new, decision, operator, decided_at, domains,
       nullif(left(current_setting('pawl.wake', true), 4000), '') as wake,
       case when not is_new then pawl.decided_status(($1::uuid[])[ord], ($2::text[])[ord]) end as status
from pawl.command_cancel($1, $2, $3, $4)
order by ord

-- name: command_count
-- $1 domain, $2 status, $3 type. Columns: value.
select pawl.command_count($1, $2, $3) as value

-- name: command_times
-- $1 numbers of commands. Columns: id, wait_us (from the send to the first claim; -1: unknown), run_us (of the attempt that ended it; -1: it has not
-- ended so), is_running.
select t.id, coalesce(t.wait_us, -1) as wait_us, coalesce(t.run_us, -1) as run_us, t.is_running
from pawl.command_times($1::bigint[]) t

-- name: command_decide
-- $1 command ids, $2 domains or null, $3 decision, $4 operator, $5 reason, $6 result. Columns: as pawl.command_decide;
-- wake: domains in which commands were queued by it, joined by commas; status: the present one of a command about which
-- this call has not decided.
select ord, verdict, is_new, decision, operator, decided_at, domains,
       nullif(left(current_setting('pawl.wake', true), 4000), '') as wake,
       case when not is_new then pawl.decided_status(($1::uuid[])[ord], ($2::text[])[ord]) end as status
from pawl.command_decide($1, $2, $3, $4, $5, $6)
order by ord

-- name: command_domains
-- The domains that have a command of this id, by name. $1 command id
select distinct d.name
from pawl.command c
join pawl.domain d on d.id = c.domain_id
where c.command_id = $1
order by d.name

-- name: command_list
-- $1 domain, $2 status, $3 type, $4 ids below, $5 limit, $6 rows read at most, $7 since, $8 until, $9 batch, $10 command id,
-- $11 correlation id, $12 order key, $13 patterns of domains that the caller is bound to; null: any. Columns: as
-- pawl.command_page, and due_at: when a delayed command is due; null: it is not delayed. A row without an id ends a page
-- behind which there may be more.
select coalesce(l.id, 0) as id, l.command_id, l.domain, l.type, l.status, l.attempts, l.created_at,
       pawl.micros(d.due) as due_at, l.error, l.searched_to
from pawl.command_page_bound($13::text[], $1, $2, $3, $4, $5, $6, $7::text::timestamptz, $8::text::timestamptz, $9::uuid, $10::uuid,
                             $11::text, $12::text) l
left join lateral (select d.due from pawl.delayed d where d.id = l.id limit 1) d on true
order by l.searched_to desc, l.id is null

-- name: command_numbers
-- $1 domains, $2 command ids, as many of both. Columns: value, in the order of the ids; 0 when unknown.
select coalesce(c.id, 0) as value
from unnest($1::text[], $2::uuid[]) with ordinality u (domain, command_id, ord)
left join (select n.name, pawl.domain_find(n.name) as id
           from (select distinct t from unnest($1::text[]) t) n (name)) d on d.name = u.domain
left join lateral (select c.id from pawl.command c
                   where c.command_id = u.command_id and c.domain_id = d.id limit 1) c on true
order by u.ord

-- name: command_show
-- $1 command id, $2 domain or null. Columns: value, one row; NULL when unknown.
select pawl.command_show($1, $2)::text as value

-- name: commands_show
-- $1 numbers of commands, $2 bytes. The first of them, up to the one with which they reach so many bytes: id, value.
select s.id, s.value::text as value
from pawl.commands_show(pawl.commands_fit($1, $2)) s

-- name: dead_letter_claim
-- $1 types text[], $2 limit integer, $3 lease_ms integer, $4 tries_max integer.
-- A row per letter: id bigint, operation_type, operation_key text, operation_data jsonb, lease bigint.
select id, operation_type, operation_key, operation_data, lease
from pawl.dead_letter_claim($1, $2, $3, $4)

-- name: dead_letter_delete
-- $1 id bigint. One bigint: how many were deleted.
select count(*)
from pawl.dead_letter_delete(array[$1])

-- name: dead_letter_find
-- $1 id bigint. At most one row: the columns of DeadLetter.
select id, operation_type, operation_key, pawl.dead_letter_shown(id) as operation_data, error_message, error_code,
       retry_count, status, pawl.micros(created_at) as created_at, pawl.micros(last_retry_at) as last_retry_at,
       pawl.dead_letter_retried_by(operation_type) as retried_by
from pawl.failed_operations
where id = $1

-- name: dead_letter_forward
-- $1 limit, $2 tries, $3 milliseconds until the next. Columns: count, how many were sent.
select pawl.dead_letter_forward($1::integer, $2::integer, $3::integer)::bigint as count

-- name: dead_letter_hold
-- $1 id bigint, $2 lease bigint. One text: "retrying", "resolved", or null when the lease is lost.
select pawl.dead_letter_hold($1, $2) as value

-- name: dead_letter_list
-- All of them. $1 status text (null: any), $2 type text (null: any), $3 before bigint, $4 limit integer.
-- Newest first, ids below before: the columns of DeadLetter.
select id, operation_type, operation_key, pawl.dead_letter_shown(id) as operation_data, error_message, error_code,
       retry_count, status, pawl.micros(created_at) as created_at, pawl.micros(last_retry_at) as last_retry_at,
       pawl.dead_letter_retried_by(operation_type) as retried_by
from pawl.failed_operations
where id < $3 and ($1::text is null or status = $1) and ($2::text is null or operation_type = $2)
order by id desc
limit $4

-- name: dead_letter_list_open
-- The unresolved ones. $1 type text (null: any), $2 before bigint, $3 limit integer.
-- A statement of its own, so that the index of open letters serves it. Newest first: the columns of DeadLetter.
select id, operation_type, operation_key, pawl.dead_letter_shown(id) as operation_data, error_message, error_code,
       retry_count, status, pawl.micros(created_at) as created_at, pawl.micros(last_retry_at) as last_retry_at,
       pawl.dead_letter_retried_by(operation_type) as retried_by
from pawl.failed_operations
where status <> 'resolved' and id < $2 and ($1::text is null or operation_type = $1)
order by id desc
limit $3

-- name: dead_letter_next
-- When the first of the pending letters of these types is due, in ms from now, at most a day. $1 types text[]
select least(coalesce(ceil(extract(epoch from min(d.next_retry_at) - pawl.now()) * 1000), 86400000),
             86400000)::bigint as value
from unnest($1::text[]) t (type)
cross join lateral (
  select f.next_retry_at from pawl.failed_operations f
  where f.status = 'pending' and f.operation_type = t.type order by f.next_retry_at limit 1) d

-- name: dead_letter_put
-- $1 types text[], $2 keys text[], $3 data jsonb[], $4 messages text[], $5 codes text[], $6 delay_ms integer.
-- One row: id bigint.
select id
from pawl.dead_letter_put_own($1, $2, $3, $4, $5, $6)

-- name: dead_letter_retry
-- $1 id bigint. One row: moved boolean, status text (null: there is no such letter).
select moved, status
from pawl.dead_letter_retry(array[$1])

-- name: dead_letter_settle
-- One letter. $1 id bigint, $2 lease bigint, $3 worked boolean, $4 message text, $5 code text, $6 tries_max integer,
-- $7 delay_ms integer. One row: settled boolean, status text (null: the letter was deleted).
select settled, status
from pawl.dead_letter_settle(array[$1], array[$2], array[$3], array[$4], array[$5], $6, $7)

-- name: decided_position
-- What is known about the head of the queue; one row per priority, the same three numbers in each. first: null when
-- empty. $1 domain number, $2 low watermarks, $3 types or null, $4 how many to read for types
select h.allocated, h.running, h.oldest, coalesce(f.pos, h.allocated + 1) as first
from pawl.decided_position($1::integer, $2::bigint[], $3::text[], $4::integer) h,
     unnest(h.firsts) with ordinality f (pos, priority)
order by f.priority

-- name: domain
-- The number of a domain; 0: nothing was ever sent there.
-- $1 name
select coalesce(pawl.domain_find($1::text), 0)::bigint as value

-- name: domain_list
-- $1 name or null, $2 the name before the first one, or null, $3 limit, $4 order, $5 patterns of domains or null. Columns: as pawl.domain_list.
select d.domain, d.queued, d.delayed, d.parked, d.running, d.in_tsq, pawl.micros(d.oldest_at) as oldest_at,
       coalesce(d.oldest_s, 0) as oldest_s, to_jsonb(d.estimated) as estimated, d.recent,
       coalesce(d.recent ->> 'sent_per_s', '-') as sent_per_s, coalesce(d.recent ->> 'ended_per_s', '-') as ended_per_s,
       coalesce((d.recent ->> 'wait_p50_ms')::bigint, -1) as wait_p50_ms, coalesce((d.recent ->> 'wait_p95_ms')::bigint, -1) as wait_p95_ms,
       coalesce((d.recent ->> 'run_p50_ms')::bigint, -1) as run_p50_ms, coalesce((d.recent ->> 'run_p95_ms')::bigint, -1) as run_p95_ms,
       h.pauses, h.limits
from pawl.domain_list($1::text, $2::text, $3::integer, $4::text, $5::text[]) d
cross join lateral pawl.domain_held(d.domain) h

-- name: domain_limit_remove
-- $1 domain, $2 type or null for all, $3 operator, $4 reason. wake: domains to notify, joined by commas
select c.changed, nullif(left(current_setting('pawl.wake', true), 4000), '') as wake
from pawl.domain_limit_remove($1::text, $2::text, null, $3::text, $4::text) c (changed)

-- name: domain_limit_set
-- $1 domain, $2 type or null, $3 running, $4 rate, $5 period in s, $6 burst, $7 per key, $8 operator, $9 reason. wake: as above
select 1::bigint as changed, nullif(left(current_setting('pawl.wake', true), 4000), '') as wake
from pawl.domain_limit_set($1::text, $2::text, $3::integer, $4::integer, $5::integer, $6::integer, $7::boolean, $8::text, $9::text) s

-- name: domain_limits
-- $1 domain. Columns: as DomainLimit.
select l.type, l.per_key, coalesce(l.running, 0)::bigint as running, coalesce(l.rate, 0)::bigint as rate, l.period_s::bigint as period_s,
       coalesce(l.burst, 0)::bigint as burst, coalesce(l.running_now, -1) as running_now
from pawl.domain_limits($1::text) l

-- name: domain_names
-- If nothing was ever sent to a domain: an empty text, and the names of up to 1000 others, of processes or of commands as
-- this one; else no row. $1 name
with known as (select from pawl.domain_name d where d.name = $1::text)
select '' as value where not exists (select from known)
union all
(select d.name from pawl.domain_name d where not exists (select from known) and d.name !~ '^telegram:'
   and starts_with(d.name, 'process:') = starts_with($1::text, 'process:')
 order by d.id desc limit 1000)

-- name: domain_pause
-- $1 domain, $2 types or null, $3 operator, $4 reason. wake: as above
select c.changed, nullif(left(current_setting('pawl.wake', true), 4000), '') as wake
from pawl.domain_pause($1::text, $2::text[], $3::text, $4::text) c (changed)

-- name: domain_pauses
-- $1 domain. Columns: as DomainPause.
select p.domain, p.type, p.reason, p.operator, pawl.micros(p.at) as at
from pawl.domain_pauses($1::text) p

-- name: domain_resume
-- $1 domain, $2 types or null, $3 operator, $4 reason. wake: as above
select c.changed, nullif(left(current_setting('pawl.wake', true), 4000), '') as wake
from pawl.domain_resume($1::text, $2::text[], $3::text, $4::text) c (changed)

-- name: extend
-- Keep leases for $3 ms more; a verdict for each, in order. $1 ids, $2 tokens, $3 ms
select e.verdict
from pawl.extend($1::bigint[], $2::bigint[], $3::integer, p_unflushed => true) e
order by e.ord

-- name: handler_call
-- $1 schema, $2 name, $3 payload, $4 command id
select pawl.handler_call($1::text, $2::text, $3::jsonb, $4::uuid)::text as value

-- name: handler_call_shared
-- Several commands in this transaction: a row for each that is settled by it. The others must be called again, each in a transaction of its own. wake: as
-- for settle. $1 schema, $2 name, $3 ids, $4 tokens, $5 payloads, $6 command ids
select h.ord, h.status, nullif(left(current_setting('pawl.wake', true), 4000), '') as wake
from pawl.handler_call_shared($1::text, $2::text, $3::bigint[], $4::bigint[], $5::jsonb[], $6::uuid[]) h

-- name: handler_find
-- A handler; no row: there is no such function.
-- $1 schema, $2 name
select pawl.handler_is_safe(p.oid) as is_safe,
       has_schema_privilege(session_user, n.oid, 'usage')
         and has_function_privilege(session_user, p.oid, 'execute') as is_callable,
       p.prosecdef as is_definer, p.proowner::regrole::text as owner, session_user::text as connected
from pg_catalog.pg_proc p
join pg_catalog.pg_namespace n on n.oid = p.pronamespace
where n.nspname = $1::text and p.proname = $2::text and p.prokind = 'f' and not p.proretset
  and p.pronargs = 2 and p.proargtypes[0] = 'jsonb'::regtype and p.proargtypes[1] = 'uuid'::regtype
  and p.prorettype = 'jsonb'::regtype

-- name: has_work
-- $1 domain number, $2 types or NULL for all. Columns: value, 1 when any such command is queued, delayed or
-- leased, else 0.
select pawl.has_work($1::integer, $2::text[])::integer::bigint as value

-- name: key
-- The id of a key of the role that is connected. $1 the key
select pawl.key($1::text)::text as value

-- name: keys
-- The same of several, in their order; null: no key. $1 the keys
select pawl.key(u.key)::text as value from unnest($1::text[]) with ordinality u (key, ord) order by u.ord

-- name: maintain
-- $1 most rows, $2 ms after which an open batch without new commands is sealed, $3 days to keep replies, $4 days to
-- keep resolved dead letters, $5 the reply queue to go on from, or null, $6 how many reply queues pawl creates in all.
-- Columns: expired (batches), replies, letters, after (null: that was the last queue).
select m.expired, m.replies, m.after, m.letters
from pawl.maintain($1::integer, $2::bigint * interval '1 ms', make_interval(days => $3::integer),
                   make_interval(days => $4::integer), $5::text) m, pawl.reply_queues_bound($6::integer)

-- name: on_complete_retry
-- $1 the key of a dead letter of type "on_complete".
select pawl.on_complete_retry($1)

-- name: pauses
-- The types of a domain that are paused; '*', the whole domain, is the first. $1 domain
select p.type as value
from pawl.domain_name d
join pawl.pause p on p.domain_id = d.id
where d.name = $1::text
order by p.type <> '*'

-- name: postpone
-- Release leased commands until later: $1 ids, $2 tokens, $3 delays in ms, $4 reason; how many leases ended
select pawl.postpone($1::bigint[], $2::bigint[], $3::bigint[], $4::text)::bigint as value

-- name: prune
-- $1 most rows, $2 days to keep ended commands, $3 where to go on, $4 days to keep keys.
-- Columns: gone, after, over (the scan is complete).
select r.gone, coalesce(r.after, -9223372036854775808) as after, r.after is null as over
from pawl.retain($1, make_interval(days => $2), make_interval(days => greatest($4, $2)), $3) r

-- name: prune_audit
-- $1 most rows, $2 days to keep the audit. A transaction of its own, because it may lock the audit. Columns: value,
-- how many rows were deleted; none while retention waits.
select case when pawl.retention_ready() then pawl.prune_audit($1, make_interval(days => $2)) else 0 end as value

-- name: release
-- Undo a claim: $1 ids, $2 tokens; a verdict for each, in order
select r.verdict
from pawl.release($1::bigint[], $2::bigint[], p_unflushed => true) r
order by r.ord

-- name: report_progress
-- The newest reports of handlers; a verdict for each, in order.
-- $1 ids, $2 tokens, $3 percents as texts, $4 texts, $5 steps, null when no report has one
select r.verdict
from pawl.report_progress($1::bigint[], $2::bigint[], $3::text[]::integer[], $4::text[], $5::text[]) r
order by r.ord

-- name: reply_retry
-- $1 the key of a dead letter of type "reply".
select pawl.reply_retry($1)

-- name: requeue_due
-- Move up to $1 delayed commands that are due, and as many whose lease ran out, back to the queue. $1 limit, $2 leases
-- that ended before this were read, in microseconds, $3 how far to read ahead in ms, $4 nothing due before this is
-- left, in microseconds. due_left_us: later than looked_us when nothing is left. wake: domains in which commands were
-- queued, joined by commas. is_attached_due: pawl.attached_due has something to do
select b.moved, b.next_ms, pawl.micros(b.looked) as looked_us,
       coalesce(pawl.micros(b.due_left), pawl.micros(b.looked) + 1) as due_left_us, b.running, b.oldest,
       nullif(left(current_setting('pawl.wake', true), 4000), '') as wake, pawl.attached_is_due(b.looked) as is_attached_due
from pawl.requeue_due($1::integer, timestamptz 'epoch' + $2::bigint * interval '1 us', $3::integer,
                      timestamptz 'epoch' + $4::bigint * interval '1 us') b

-- name: retry_policy_list
-- $1 domain. Columns: type ('*' is the domain's own), delays in ms joined by commas, is_default, order_key (hold or
-- release).
select p.type, array_to_string(p.delays_ms, ',') as delays_ms, p.is_default, p.order_key
from pawl.retry_policy_list($1::text) p

-- name: retry_policy_set
-- $1 domain, $2 type or null for the domain's own, $3 delays in ms, $4 hold or release; both null remove it.
select pawl.retry_policy_set($1::text, $2::text, $3::bigint[], $4::text)

-- name: send
-- Put commands of one domain in the queue; a row for each, in order. $1 domain, $2 types, $3 payloads, $4 command ids,
-- $5 delays in ms, $6 priorities, $7 max attempts, $8 reply queues, $9 correlation ids, $10 batch, $11 actor, $12 true:
-- return BUSY instead of waiting for a concurrent send, $13 order keys; arrays from $5 on may be null; $14 true: the
-- ids were made for this call; if all commands are new, one row with the ord 0 says so; $15 texts for the module that
-- reserves the domain, may be null; $16 true: the id is that of a key, may be null; $17 tokens of items that may start, or
-- null: none may; for $18 worker, $19 lease in ms, $20 types that it handles, or null, $21 positions behind which its
-- claims begin; $22 unique keys, $23 their scopes, $24 what to do on a duplicate: null, no item has one
select s.ord, s.is_new, s.status, s.refusal, s.number, s.payload, s.loaded, case when s.duplicate is not null then s.command_id end as first_id,
       s.duplicate
from pawl.send_items($12::boolean, $1::text, $2::text[], $3::jsonb[], $4::uuid[], $5::bigint[],
                     $6::integer[], $7::integer[], $8::text[], $9::text[], $10::uuid,
                     $11::text, $13::text[], $14::boolean, $15::text[], $16::text[]::boolean[], $17::text[]::bigint[], $18::text,
                     $19::integer, $20::text[], $21::bigint[], $22::text[], $23::text[], $24::text[]) s

-- name: settle
-- How leased commands ended; a row for each, in order. wake: domains in which commands were queued by it, joined by
-- commas. $1 ids, $2 tokens, $3 outcomes; $4 results, $5 errors, $6 delays in ms as texts, $7 domains, $8 command ids:
-- null when no command has one; $9 true: do not wait for leases that another transaction has locked, their status is
-- BUSY; $10 free handlers, or null. started: see pawl.resume_started
select s.ord, s.settled, s.again, s.status, nullif(left(current_setting('pawl.wake', true), 4000), '') as wake, s.started
from pawl.settle_items($9::boolean, $1::bigint[], $2::bigint[], $3::text[], $4::jsonb[], $5::text[],
                       $6::text[]::bigint[], $7::text[], $8::uuid[], $10::jsonb) s

-- name: wake
-- One note for each domain that has work, in a transaction of its own. It writes nothing, and a lost notification is
-- harmless: so its commit waits neither for a flush nor for a standby. $1 domains
select pawl.wake(d.name)::text as note
from (select set_config('synchronous_commit', 'off', true) offset 0) s
cross join unnest($1::text[]) d (name)

-- name: reply_queue_list
-- $1 behind this name or null, $2 limit. A row for each, by name.
select queue, creator, messages, pawl.micros(oldest_at) as oldest_at, pawl.micros(created_at) as created_at
from pawl.reply_queue_list($1, $2)

-- name: reply_read
-- $1 queue, $2 limit, $3 seconds for which they are hidden, $4 bytes.
select msg_id, read_count, pawl.micros(enqueued_at) as enqueued_at, pawl.micros(visible_at) as visible_at, message
from pawl.reply_read($1, $2, $3, $4)

-- name: reply_ack
-- $1 queue, $2 numbers of replies, $3 read counts. A row for each, by ord.
select verdict as value
from pawl.reply_ack($1, $2, $3)
order by ord

-- name: outcome_get
-- $1 number of a command. At most one row: as pawl.outcome_get.
select ended, status, result, error
from pawl.outcome_get($1)

-- name: outcomes_ended
-- $1 numbers of commands. A row with the number of each that has ended.
select e as value
from pawl.outcomes_ended($1) e

-- name: outcomes_find
-- $1 command ids, $2 domains or null, $3 prefixes of domains or null. A row for each, by ord: id 0 and domain null for one that is
-- unknown, or that several domains have.
select coalesce(id, 0) as id, domain, ended
from pawl.outcomes_find($1, $2, $3)
order by ord

-- name: work_left
-- What a worker that drains a domain waits for: $1 domain, $2 types, null for all. Columns: queued, delayed, parked
-- (behind a command with the same order key), leased. Reads the queues alone, which a worker may read.
select
  (select count(*) from pawl.ready r
   where r.domain_id = d.id
     and ($2::text[] is null or (select c.type from pawl.command c where c.id = r.id) = any ($2))) as queued,
  (select count(*) from pawl.delayed w
   where w.domain_id = d.id
     and ($2::text[] is null or (select c.type from pawl.command c where c.id = w.id) = any ($2))) as delayed,
  (select count(*) from pawl.parked p
   where p.domain_id = d.id
     and ($2::text[] is null or (select c.type from pawl.command c where c.id = p.id) = any ($2))) as parked,
  (select count(*) from pawl.lease l
   where l.domain_id = d.id
     and ($2::text[] is null or (select c.type from pawl.command c where c.id = l.id) = any ($2))) as leased
from (select pawl.domain_find($1)) d (id)
