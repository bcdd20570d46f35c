-- $1 key uuid, $2 hash of the request bytea. Rows: none, or the kept answer.
select status, body, is_same from pawl.answer_find($1, $2)
