-- 0019_audit_view.sql - the audit follows from the rows of the commands; what they do not say is an event.
--
-- Each command had three rows in pawl.audit, and two of them said what its other rows say: SENT is in pawl.command, RECEIVED and the end
-- are in pawl.lease and pawl.outcome. Now pawl.audit is a view (sql/bus/audit.sql) over these tables, over pawl.event (retries, rescues,
-- troubleshooting, operators) and over pawl.kept_audit (one row per command that retention has deleted).
--
-- Nothing is lost: the table pawl.audit becomes the first partition of pawl.event, with all of its rows. Columns say which events are
-- there already, so that the view shows none twice. Time: one scan and one index of pawl.audit.

lock table pawl.command, pawl.lease, pawl.outcome, pawl.audit in access exclusive mode;

-- sent_event: its event SENT is a row of pawl.event. True for the commands that exist now, without rewriting them; null for later ones.
alter table pawl.command add column sender text, add column sent_event boolean default true;
alter table pawl.command alter column sent_event drop default;

-- The event RECEIVED of the lease: when and by whom the command was claimed. Written to pawl.event when the lease does not end by a settle.
alter table pawl.lease add column started_at timestamptz, add column worker text;
with received as (
  select distinct on (a.id) a.ctid as place, a.id, a.at, a.actor
  from pawl.lease l join pawl.audit a on a.id = l.id and a.event = 'RECEIVED' and a.attempt = l.attempt
  order by a.id, a.at desc, a.ctid desc
), gone as (
  delete from pawl.audit a using received r where a.ctid = r.place
)
update pawl.lease l set started_at = r.at, worker = r.actor from received r where r.id = l.id;
update pawl.lease l set started_at = clock_timestamp() where l.started_at is null;
alter table pawl.lease alter column started_at set not null;

-- The event RECEIVED of the attempt that was settled, and the end itself. started_at is null where both are rows of pawl.event: for
-- commands that ended before this migration, and for those that an operator or a cancellation ended.
alter table pawl.outcome add column started_at timestamptz, add column worker text;

-- Partitions are weeks of `at`; retention drops those that are old enough. event_before: everything up to the week after next.
-- event_rest: what falls into no other partition, because no monitor has run for weeks.
create table pawl.event (
  id bigint not null,
  at timestamptz not null,
  domain_id integer not null,
  attempt smallint not null,
  event text not null,
  command_id uuid, -- of a command that is not in pawl.command, and in rows SENT of earlier versions
  actor text,
  details jsonb,
  constraint event_event_check check (event in ('SENT', 'RECEIVED', 'COMPLETED', 'FAILED', 'RETRY_SCHEDULED', 'MOVED_TO_TSQ',
    'OPERATOR_RETRY', 'OPERATOR_CANCEL', 'OPERATOR_COMPLETE', 'CANCELED'))
) partition by range (at);
create index event_id on pawl.event (id);
create index event_at on pawl.event (at);

alter table pawl.audit rename to event_before;
alter table pawl.event_before rename constraint audit_event_check to event_event_check;
alter index pawl.audit_command rename to event_before_id;
do $$
begin
  execute format('alter table pawl.event attach partition pawl.event_before for values from (minvalue) to (%L)',
    date_bin('7 days', greatest(now(), (select max(e.at) from pawl.event_before e)), '2001-01-01 00:00:00+00') + interval '14 days');
end
$$;
create table pawl.event_rest partition of pawl.event default;
-- No primary key, because nothing identifies an event. Without a replica identity its rows could not be deleted in a database with a
-- publication for all tables.
alter table pawl.event replica identity full;
alter table pawl.event_rest replica identity full;

-- What the audit still says about a command that retention has deleted: at most the events SENT, RECEIVED and the end. Partitions are
-- weeks of ended_at, made by retention when it writes the first row of a week.
create table pawl.kept_audit (
  id bigint not null,
  domain_id integer not null,
  command_id uuid not null,
  created_at timestamptz, -- null: SENT is a row of pawl.event
  sender text,
  started_at timestamptz, -- null: RECEIVED and the end are rows of pawl.event
  worker text,
  ended_at timestamptz not null,
  status text not null,
  attempts smallint not null,
  error text,
  primary key (id, ended_at)
) partition by range (ended_at);

-- The audit shows no event older than this: one row, which only moves up. Rows are deleted when their partition is old enough.
create table pawl.audit_start (
  single boolean primary key default true,
  at timestamptz not null,
  constraint audit_start_single_check check (single)
);
insert into pawl.audit_start (at) values ('-infinity');
