-- tally_add.sql - $1 source, $2 number of the flush, $3 names, $4 counts. value: how many were new.
select pawl.tally_add($1::text::uuid, $2::bigint, $3::text[], $4::bigint[]) as value
