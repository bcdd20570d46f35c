-- $1 schema, $2 name, $3 payload, $4 command id
select pawl.handler_call($1::text, $2::text, $3::jsonb, $4::uuid)::text as value
