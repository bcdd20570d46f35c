-- Release leased commands until later: $1 ids, $2 tokens, $3 delays in ms, $4 reason; how many leases ended
select pawl.postpone($1::bigint[], $2::bigint[], $3::bigint[], $4::text)::bigint as value
