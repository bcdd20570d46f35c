-- 0024_process_sent.sql - what a process has sent, and how deep children are nested.
--
--     process_sent    one row per command or child that a step has sent; deleted by retention with its process
--     process_orphan  one row per process that has ended, or is being compensated, before what it has sent: a periodic task cancels that
--
-- What was sent before this migration is not known here, and is not canceled with its process.

create table pawl.process_sent (
  id bigint not null, -- of the process
  sent_id bigint not null, -- of the command or child
  primary key (id, sent_id)
);

create table pawl.process_orphan (
  id bigint primary key, -- of the process
  compensates boolean not null -- what its children have done
);

alter table pawl.process add column depth smallint not null default 0; -- 0: no step has started it
