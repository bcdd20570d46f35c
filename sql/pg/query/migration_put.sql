-- $1 version integer, $2 name text, $3 checksum text
insert into pawl.migration (version, name, checksum)
values ($1, $2, $3)
