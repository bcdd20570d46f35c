-- 0053_process_verdict.sql - what the sender of a response was answered, so that a repeat is answered the same.
--
-- Null: outcomes of commands and children, decisions, and responses of earlier versions, whose answers had no verdict.

alter table pawl.process_response add column verdict text; -- RESUMED, STORED, STORED_UNEXPECTED, LATE
alter table pawl.process_response add column unexpected_in integer; -- of STORED_UNEXPECTED: the definition of which no wait takes this name
