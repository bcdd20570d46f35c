-- tables.sql - processes: commands that may be suspended.
--
-- A process is a command in the domain 'process:' || its own domain, so it is in exactly one of the bus's places, and
-- what the bus promises about commands holds for it. While it waits it is in pawl.delayed. These tables keep what a
-- command has not. How often their rows change:
--
--     process_definition  one row per version of a definition file; never changed
--     process_definition_step  one row per step of it, from the parser of files; never changed
--     process             one row per process; updated by patches, when it is suspended and when it resumes
--     process_step        one row per record: an attempt of a step that ended, or what a step remembers. Inserted once;
--                         a retry from a step sets it aside or deletes it, retention deletes it
--     process_response    one row per response; inserted once, set aside by a retry
--     kept_response       one row per response that a life has taken which has ended; deleted by retention
--     process_sent        one row per command or child that a step has sent; deleted by retention with its process
--     process_orphan      one row per command or child that was open when its process ended or began to be compensated;
--                         deleted when it is canceled
--
-- Columns of pawl.process that change often are not indexed, so that these updates are heap-only. What is indexed
-- changes once (phase, deadline_due).
--
-- A step is named by (step, item, undo, aside): the name in the definition or of the call in code, which item or
-- round of each loop around it, the outermost first, whether it is the compensation of that step, and which of its lives. No name
-- has a meaning in any of its characters.

create table pawl.process_definition (
  id integer generated always as identity primary key,
  domain text not null,
  type text not null,
  version integer not null,
  source text not null, -- the file
  deadline_ms bigint, -- from the start of a process; null: none
  deadline_action text not null, -- also for a deadline that the start gives without an action
  created_at timestamptz not null,
  author text,
  constraint process_definition_key unique (domain, type, version),
  constraint process_definition_deadline_check check (deadline_action in ('troubleshoot', 'compensate', 'fail'))
);

-- What SQL knows of a definition: src/process/definition_row.c writes it from what the parser has read and checked. SQL
-- reads no file.
create table pawl.process_definition_step (
  definition_id integer not null,
  number smallint not null, -- in the order of the file, from 0
  last smallint not null, -- number of the last step inside of this one; its own if there is none
  name text not null,
  kind text not null,
  list text not null, -- where it is: '/STEP/BRANCH' for each step around it, the outermost first
  position smallint not null, -- in that list, from 0
  depth smallint not null, -- of the loops that it is inside of: its records name an item or round of each
  parent text, -- the step around its list; null: none
  is_loop boolean not null, -- the steps inside of it run once per item or round
  acts boolean not null, -- on the world outside of the process
  is_compensated boolean not null,
  attempts smallint, -- at most; null: it does not act
  undo_attempts smallint, -- the same of its compensation
  sends text, -- where its command or child is sent, as type and domain; null: it sends none
  undo_sends text, -- the same of its compensation
  response text, -- of a wait: the name of the responses that it takes; null: it has one of the next two
  race text[], -- the names of which the first response ends it
  responses integer, -- how many of them
  until text, -- the condition
  sleeps text, -- in which form
  then_at smallint, -- of a when: the position at which it goes on; behind the last one: the end of the list
  else_at smallint,
  primary key (definition_id, name),
  constraint process_definition_step_key unique (definition_id, list, position),
  constraint process_definition_step_name_check check (name ~ '^[A-Za-z0-9][A-Za-z0-9_-]{0,49}$' and name <> 'end'),
  constraint process_definition_step_number_check check (number between 0 and 999 and last between number and 999),
  constraint process_definition_step_wait_check check (
    case when kind = 'wait' then num_nonnulls(response, race, until) = 1 and (responses >= 1) is true
    else num_nonnulls(response, race, until) = 0 end),
  constraint process_definition_step_when_check check (kind <> 'when' or (then_at > position and else_at > position) is true)
);
create index process_definition_step_wait on pawl.process_definition_step (definition_id) where kind = 'wait';

create table pawl.process (
  id bigint primary key, -- of its command
  definition_id integer, -- null: its steps are code
  phase text not null default 'forward',
  state jsonb not null,
  version bigint not null default 1, -- grows with every change of the state
  step text, -- the last one that was recorded, or in which it waits; see pawl.process_step
  item integer[] not null default '{}',
  undo boolean not null default false,
  failed text, -- the step that failed for good, as it is shown; null: none has
  reason text, -- why it is compensated; null: its code has not said
  compensating_at timestamptz, -- when that began
  wait text, -- the status that it shows while it waits
  wait_due timestamptz, -- of pawl.delayed, while it waits; with another one there it has gone on, and was put off
  -- What resumes it, of which one is enough: [{"kind": "signal" | "reply" | "any", "name", "item", "undo", "aside",
  -- "count", "to_step", "to_item"}]. A count is that of all such responses since the start; of signals without those that name another step.
  waits jsonb,
  deadline timestamptz,
  deadline_action text,
  retried_at timestamptz, -- failures before this do not count: an operator had it tried again
  depth smallint not null default 0, -- of nested children; 0: no step has started it
  response_count integer not null default 0, -- from outside, and their bytes as text
  response_bytes bigint not null default 0,
  -- The ids of what its steps send and post are derived from it, so that no other sender can take one.
  secret uuid not null default gen_random_uuid(),
  waited_at timestamptz, -- when it was suspended to wait in `step`; null: its state was patched or it was retried since
  deadline_given text, -- by the start, see pawl.deadline_read; null: the deadline is that of the definition
  deadline_due timestamptz, -- when its deadline is decided about; null: it has none, or it was
  domain_id integer, -- of its command
  code_type text, -- of its command, if it was started without a definition
  life integer not null default 1, -- how often it has begun: each time that it continues as new, another life begins
  input jsonb, -- what this life began with; null: the payload of its command
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
  number bigint not null default nextval('pawl.step_seq'), -- the order of the records; times do not give it
  step text not null,
  item integer[] not null default '{}',
  undo boolean not null default false,
  -- step: an attempt has ended. begin: a wait, a sleep, an each or an awaited command has begun, with what it remembers. input: what the attempts
  -- are given. done: the action has happened, and its step could not be recorded
  kind text not null default 'step',
  aside smallint not null default 0, -- set aside by the nth retry from a step; 0: it counts
  attempt smallint not null default 1,
  verdict text not null default 'done', -- done; failed: counts by the policy; final: not tried again; refused: the same, for a business reason; timed_out
  retry_at timestamptz, -- not tried again before this; null: as the policy says
  response text, -- of a wait: the name of the responses that it has taken
  taken int4multirange, -- and which of this name, by their order from 0
  call integer, -- of code: the number of the call, from 0
  call_kind text,
  input_hash text,
  result jsonb,
  error text, -- null: it succeeded
  is_reset boolean, -- of a failure: it does not count any more; false: it stays; null: no retry has decided
  started_at timestamptz not null,
  ended_at timestamptz not null,
  primary key (id, step, item, undo, kind, aside, attempt),
  constraint process_step_kind_check check (kind in ('step', 'begin', 'input', 'done')),
  constraint process_step_verdict_check check (verdict in ('done', 'failed', 'final', 'refused', 'timed_out'))
);

create sequence pawl.response_seq;
create table pawl.process_response (
  id bigint not null, -- of the process
  kind text not null, -- signal: from an application. reply: the outcome of what a step has sent. cancel, deadline, move: a decision
  name text not null, -- of a signal; of the step that a reply is for
  item integer[] not null default '{}', -- and its item
  undo boolean not null default false, -- a reply to its compensation
  aside smallint not null default 0, -- and which of its records that undoes
  to_step text, -- of a signal: only this wait may take it; null: any of its name
  to_item integer[] not null default '{}', -- and its item
  key text not null, -- one response per key
  number bigint not null, -- grows in the order of arrival
  payload jsonb not null,
  is_aside boolean not null default false, -- a reply that a retry has set aside
  at timestamptz not null,
  actor text,
  met text, -- the step that waited for it when it arrived, as it is shown
  resumed boolean, -- it resumed the process
  waited_at timestamptz, -- since when the process had waited
  verdict text, -- what the sender was answered: RESUMED, STORED, STORED_UNEXPECTED, LATE; null: it is no signal
  unexpected_in integer, -- of STORED_UNEXPECTED: the definition of which no wait takes this name
  primary key (id, kind, name, item, key),
  constraint process_response_kind_check check (kind in ('signal', 'reply', 'cancel', 'deadline', 'move'))
);

-- Keys of responses outlive the life that has taken them. Not in pawl.process_response, which every activation reads.
create table pawl.kept_response (
  id bigint not null, -- of the process
  name text not null,
  key text not null,
  payload_hash bytea not null, -- as that of pawl.kept_key
  verdict text not null, -- what the sender was answered
  unexpected_in integer,
  at timestamptz not null, -- when that life ended
  primary key (id, name, key)
);
create index kept_response_at on pawl.kept_response (at);

create table pawl.process_sent (
  id bigint not null, -- of the process
  sent_id bigint not null, -- of the command or child
  step text not null,
  item integer[] not null,
  undo boolean not null,
  aside smallint not null,
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
