-- $1 id bigint, $2 lease bigint. One text: "retrying", "resolved", or null when the lease is lost.
select pawl.dead_letter_hold($1, $2) as value
