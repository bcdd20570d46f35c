-- Undo a claim: $1 ids, $2 tokens; how many leases ended
select pawl.release($1::bigint[], $2::bigint[])::bigint as value
