-- $1 key uuid, $2 hash of the request bytea, $3 status integer, $4 body text. One row: was it kept?
select pawl.answer_keep($1, $2, $3, $4) as kept
