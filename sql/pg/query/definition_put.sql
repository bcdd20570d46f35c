-- $1 checksum text
insert into pawl.definition (checksum)
values ($1)
on conflict (single) do update set checksum = excluded.checksum, applied_at = excluded.applied_at
