-- What must be there before the first migration can be remembered. Several statements. Who creates the table has its lock: another one waits briefly.
set local lock_timeout = '100ms';
-- One row per migration, written once. The time is the server's own: pawl.now() is younger than this table.
create table pawl.migration (
  version    integer     primary key check (version > 0),
  name       text        not null,
  checksum   text        not null,
  applied_at timestamptz not null default clock_timestamp()
);
-- One row at most: the checksum of the definitions as they were last applied. Written once per release.
create table pawl.definition (
  single     boolean     primary key default true check (single),
  checksum   text        not null,
  applied_at timestamptz not null default clock_timestamp()
);
