-- tables.sql - processes: commands that may be suspended.
--
-- A process is a command in the domain 'process:' || its own domain, so it is in exactly one of the bus's places, and
-- what the bus promises about commands holds for it. While it waits it is in pawl.delayed. These tables keep what a
-- command has not. How often their rows change:
--
--     process_definition  one row per version of a definition file; never changed
--     process             one row per process; updated by patches, when it is suspended and when it resumes
--     process_step        one row per attempt of a step; inserted, deleted by retention or an operator's retry
--     process_response    one row per response; inserted once, updated when it resumes the process
--     process_sent        one row per command or child that a step has sent; deleted by retention with its process
--     process_orphan      one row per command or child that was open when its process ended or began to be compensated;
--                         deleted when it is canceled
--
-- Columns of pawl.process that change often are not indexed, so that these updates are heap-only. What is indexed
-- changes once (phase, deadline_due).

create table pawl.process_definition (
  id integer generated always as identity primary key,
  domain text not null,
  type text not null,
  version integer not null,
  source text not null, -- the file
  deadline_ms bigint, -- from the start of a process; null: none
  deadline_action text,
  created_at timestamptz not null,
  author text,
  constraint process_definition_key unique (domain, type, version)
);

create table pawl.process (
  id bigint primary key, -- of its command
  definition_id integer, -- null: its steps are code
  phase text not null default 'forward',
  state jsonb not null,
  version bigint not null default 1, -- grows with every change of the state
  step text, -- the last one that was recorded, or in which it waits
  wait text, -- the status that it shows while it waits
  -- The responses that resume it as {"name": count}, of which one is enough. A count is that of all responses of this
  -- name since the start; "*" stands for any response.
  waits jsonb,
  deadline timestamptz,
  deadline_action text,
  retried_at timestamptz, -- failures before this do not count: an operator had it tried again
  depth smallint not null default 0, -- of nested children; 0: no step has started it
  response_count integer not null default 0, -- from outside, and their bytes as text
  response_bytes bigint not null default 0,
  -- The ids of what its steps send and post are derived from it, so that no other sender can take one.
  secret uuid default gen_random_uuid(),
  waited_at timestamptz, -- when it was suspended to wait in `step`; null: its state was patched or it was retried since
  deadline_given text, -- by the start, see pawl.deadline_read; null: the deadline is that of the definition
  deadline_due timestamptz, -- when its deadline is decided about; null: it has none, or it was
  domain_id integer, -- of its command
  code_type text, -- of its command, if it was started without a definition
  constraint process_phase_check check (phase in ('forward', 'compensating', 'compensated')),
  constraint process_wait_check check (wait in ('WAITING_FOR_REPLY', 'WAITING_FOR_ASYNC', 'WAITING_FOR_RETRY')),
  constraint process_deadline_check check (deadline_action in ('troubleshoot', 'compensate', 'fail'))
) with (fillfactor = 80);
-- A definition has one domain and one type: lists by either.
create index process_definition_used on pawl.process (definition_id, id);
create index process_code on pawl.process (domain_id, code_type, id) where definition_id is null;
create index process_compensating on pawl.process (id) where phase = 'compensating';
create index process_deadline_due on pawl.process (deadline_due) where deadline_due is not null;

-- The order of a process's records. Times do not give it: a clock may be set back, and a step's begin is estimated by
-- its pod.
create sequence pawl.step_seq;
create table pawl.process_step (
  id bigint not null, -- of the process
  name text not null, -- with its index for one of `each`: "charge[3]"
  attempt smallint not null,
  input_hash text, -- of the input that it was given, for replays of code
  result jsonb,
  error text, -- null: it succeeded
  started_at timestamptz not null,
  ended_at timestamptz not null,
  number bigint not null default nextval('pawl.step_seq'),
  is_reset boolean, -- of a failure: true: it does not count any more; false: it stays; null: no retry has decided
  primary key (id, name, attempt)
);

create sequence pawl.response_seq;
create table pawl.process_response (
  id bigint not null, -- of the process
  name text not null,
  key text not null, -- one response per key
  number bigint not null, -- grows in the order of arrival
  payload jsonb not null,
  at timestamptz not null,
  actor text,
  met text, -- the step that waited for it when it arrived
  resumed boolean, -- it resumed the process
  waited_at timestamptz, -- of one that resumed the process: since when that had waited
  verdict text, -- the answer to its sender, for repeats: RESUMED, STORED, STORED_UNEXPECTED, LATE
  unexpected_in integer, -- of STORED_UNEXPECTED: the definition of which no wait takes this name
  primary key (id, name, key)
);

create table pawl.process_sent (
  id bigint not null, -- of the process
  sent_id bigint not null, -- of the command or child
  primary key (id, sent_id)
);

-- A periodic task cancels what these name.
create table pawl.process_orphan (
  sent_id bigint primary key, -- of the command or child
  id bigint not null, -- of the process
  compensates boolean not null, -- what the child has done
  tries integer not null default 0 -- calls in which another transaction held it
);
create index process_orphan_next on pawl.process_orphan (tries, sent_id);
