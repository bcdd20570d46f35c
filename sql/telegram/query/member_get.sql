-- What is known about a member: $1 bot, $2 chat, $3 user.
-- Columns: status (null: not known), may_ask (the server).
select m.status, m.may_ask from pawl.telegram_member_get($1::bigint, $2::bigint, $3::bigint) m
