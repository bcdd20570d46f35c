-- 0015_kept_key.sql - keys of commands outlive their payloads.

-- One row per command that retention has deleted: written once, then, deleted after its own time. Narrow: some 130 bytes with its
-- indexes, whatever the payload was.
create table pawl.kept_key (
  command_id uuid not null,
  domain_id integer not null,
  type text not null,
  payload_hash bytea not null, -- SHA-256 of the payload as text
  status text not null,
  ended_at timestamptz not null,
  primary key (command_id, domain_id)
);
create index kept_key_ended on pawl.kept_key (ended_at);

-- It has no primary key, which would cost an index entry for each of its rows. Without a replica identity its rows could not be deleted
-- in a database with a publication for all tables.
alter table pawl.audit replica identity full;
