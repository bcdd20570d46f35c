-- queries.sql - the statements that C sends for benchmarks: `-- name: NAME` begins sql_bench_NAME.

-- name: bot
-- What updates of bot $1 have led to: matches, and messages that wait in the outbox.
select (select count(*) from rating.match) as matches,
       (select count(*) from pawl.command c join pawl.domain d on d.id = c.domain_id
        where d.name = 'telegram:' || $1::bigint || ':outbox') as messages

-- name: checkpoint
-- So that the pages of the preparation are not written during the measurement.
checkpoint

-- name: counts
-- Where all commands are: the first number is the sum of the others, or something was lost.
select (select count(*) from pawl.command) as sent,
       (select count(*) from pawl.ready) + (select count(*) from pawl.parked) as ready,
       (select count(*) from pawl.delayed) as delayed,
       (select count(*) from pawl.lease) as leased,
       (select count(*) from pawl.outcome where status = 'COMPLETED') as completed

-- name: create
-- The statement that makes the database of a bench: a name cannot be a parameter there. $1 name
select format('create database %I template template0', $1::text) as value

-- name: drop
-- Drops the temporary database, and ends the sessions that are still connected to it. $1 name
select format('drop database if exists %I with (force)', $1::text) as value

-- name: drop_unused
-- Drops the temporary database once only vacuums of the server's own are connected to it. $1 name
select format('drop database if exists %I', $1::text) as value

-- name: facts
-- Where we are and what a commit means there: figures without it say nothing.
select current_database()::text as database, split_part(current_setting('server_version'), ' ', 1) as version,
       current_setting('synchronous_commit') as synchronous_commit, current_setting('fsync') as fsync

-- name: hold_xid
-- Give this transaction a number of its own, as one that writes has.
select pg_current_xact_id()::text as value

-- name: newest
-- The number of the newest command, 0 when there is none.
select coalesce(max(id), 0) as value from pawl.command

-- name: span
-- Commands behind number $1 that are completed, and the microseconds from the first claim to the last settle among
-- them.
select count(*) as completed,
       coalesce(pawl.micros(max(o.ended_at)) - pawl.micros(min(o.started_at)), 0) as us
from pawl.outcome o
where o.id > $1 and o.status = 'COMPLETED'

-- name: tables
-- Tables of schema $1 and how many bytes they have, with indexes and TOAST.
select c.relname::text as name, pg_total_relation_size(c.oid) as bytes
from pg_class c
join pg_namespace n on n.oid = c.relnamespace
where n.nspname = $1::text and c.relkind = 'r'
order by c.relname

-- name: vacuum
-- What autovacuum would do beside the next measurement.
vacuum (analyze)

-- name: waits
-- Processes that were started with a delay: half of them wait for a response until then, the others sleep. Returns how
-- many.
with updated as (
  update pawl.process p
  set wait = 'WAITING_FOR_ASYNC', waits = case when p.id % 2 = 0 then '{"go": 1}'::jsonb end, step = 'wait'
  returning 1
)
select count(*) from updated

-- name: wal
-- Bytes of WAL the server has written so far, for all of its databases.
select (pg_current_wal_insert_lsn() - pg_lsn '0/0')::bigint as value
