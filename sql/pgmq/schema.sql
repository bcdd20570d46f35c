-- schema.sql - the types and tables of schema pgmq, as PGMQ 1.13 has them; a queue's own tables are made by queue.sql.
-- For databases without the extension pgmq: where it is installed, no file of this folder is applied (see schema.txt).
-- These are definitions, not migrations, so that they can be left out; every statement may be run again, and what queues
-- hold is not touched. A column that is added later needs an `alter table ... add column if not exists` here.

-- `create schema if not exists` wants the right to create even when there is nothing to create.
do $$
begin
  if to_regnamespace('pgmq') is null then
    create schema pgmq;
  end if;
  if to_regtype('pgmq.message_record') is null then
    create type pgmq.message_record as (
      msg_id       bigint,
      read_ct      integer,
      enqueued_at  timestamptz,
      last_read_at timestamptz,
      vt           timestamptz,
      message      jsonb,
      headers      jsonb
    );
  end if;
  if to_regtype('pgmq.queue_record') is null then
    create type pgmq.queue_record as (
      queue_name     varchar,
      is_partitioned boolean,
      is_unlogged    boolean,
      created_at     timestamptz
    );
  end if;
  if to_regtype('pgmq.metrics_result') is null then
    create type pgmq.metrics_result as (
      queue_name               text,
      queue_length             bigint,
      newest_msg_age_sec       integer,
      oldest_msg_age_sec       integer,
      total_messages           bigint,
      scrape_time              timestamptz,
      queue_visible_length     bigint,
      default_partition_length bigint
    );
  end if;
end
$$;

-- One row per queue, under the name it was given; its tables have the name in lower case.
create table if not exists pgmq.meta (
  queue_name     varchar     not null unique,
  is_partitioned boolean     not null,
  is_unlogged    boolean     not null,
  created_at     timestamptz not null default now()
);

-- One row per queue that notifies. Written with every notification and worth nothing after a crash: unlogged.
-- An unlogged table may refer to a logged one.
create unlogged table if not exists pgmq.notify_insert_throttle (
  queue_name           varchar     not null unique references pgmq.meta (queue_name) on delete cascade,
  throttle_interval_ms integer     not null default 0, -- 0: every insert notifies
  last_notified_at     timestamptz not null default to_timestamp(0)
);

-- Which routing keys reach which queue. The regular expression is made once, when the binding is.
create table if not exists pgmq.topic_bindings (
  pattern        text        not null,
  queue_name     text        not null references pgmq.meta (queue_name) on delete cascade,
  bound_at       timestamptz not null default now(),
  compiled_regex text        generated always as (
    '^' || replace(replace(regexp_replace(pattern, '([.+?{}()|\[\]\\^$])', '\\\1', 'g'), '*', '[^.]+'), '#', '.*') || '$'
  ) stored,
  constraint topic_bindings_unique_pattern_queue unique (pattern, queue_name)
);
