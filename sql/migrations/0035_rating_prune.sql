-- 0035_rating_prune.sql - find old rows of all groups, so that those of quiet chats are deleted too.

create index usage_age on rating.usage (at);
create index question_age on rating.question (asked_at);
