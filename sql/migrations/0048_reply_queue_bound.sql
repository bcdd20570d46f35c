-- 0048_reply_queue_bound.sql - how many queues pawl creates because a reply_to names them, and the lock on a queue's name.

-- One row: PAWL_REPLY_QUEUES_MAX, as a monitor has written it last.
create table pawl.reply_queue_bound (
  single boolean primary key default true,
  most integer not null,
  constraint reply_queue_bound_single_check check (single),
  constraint reply_queue_bound_most_check check (most between 1 and 100000)
);
insert into pawl.reply_queue_bound (most) values (1000);

-- Always empty: a row that a transaction inserts and deletes again locks its name until the transaction ends (pgmq.acquire_queue_lock).
create table pawl.queue_lock (
  name text primary key
);
