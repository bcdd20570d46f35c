-- 0028_process_resumed.sql - which response resumed a process, for its audit, and processes that are being compensated by an index.
--
-- resumed: null for responses that exist. The index's condition changes with the phase only, so other updates of a process stay heap-only.

alter table pawl.process_response add column resumed boolean;
create index process_compensating on pawl.process (id) where phase = 'compensating';
