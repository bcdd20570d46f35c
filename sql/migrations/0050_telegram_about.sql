-- 0050_telegram_about.sql - which message is about a match, so that its undo can edit it.

create index telegram_sent_reference on pawl.telegram_sent (bot_id, chat_id, reference);
