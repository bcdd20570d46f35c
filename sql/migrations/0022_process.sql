-- 0022_process.sql - processes: commands that may be suspended.
--
-- A process is a command in the domain 'process:' || its own domain, so it is in exactly one of the bus's places, and what the bus promises
-- about commands holds for it. While it waits it is in pawl.delayed. These tables keep what a command has not:
--
--     process_definition  one row per version of a definition file; never changed
--     process             one row per process; updated when its state is patched, when it is suspended and when a response resumes it
--     process_step        one row per attempt of a step that ended; inserted once, deleted by retention or by an operator's retry
--     process_response    one row per response; inserted once
--
-- No column that changes is indexed, so that updates of pawl.process are heap-only.

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
  -- While it waits: the status it shows, and the responses that resume it as {"name": count}, of which one is enough. A count is that of all
  -- responses of this name since the start; "*" stands for any response.
  wait text,
  waits jsonb,
  deadline timestamptz,
  deadline_action text,
  retried_at timestamptz, -- failures before this do not count: an operator had it tried again
  constraint process_phase_check check (phase in ('forward', 'compensating', 'compensated')),
  constraint process_wait_check check (wait in ('WAITING_FOR_REPLY', 'WAITING_FOR_ASYNC', 'WAITING_FOR_RETRY')),
  constraint process_deadline_check check (deadline_action in ('troubleshoot', 'compensate', 'fail'))
) with (fillfactor = 80);
create index process_definition_used on pawl.process (definition_id);

create table pawl.process_step (
  id bigint not null, -- of the process
  name text not null, -- with its index for one of `each`: "charge[3]"
  attempt smallint not null,
  input_hash text, -- of the input that it was given, for replays of code
  result jsonb,
  error text, -- null: it succeeded
  started_at timestamptz not null,
  ended_at timestamptz not null,
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
  primary key (id, name, key)
);
