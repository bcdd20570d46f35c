-- 0040_process_waited.sql - since when a process waits, for its audit and for the step that it is shown in.
--
-- Null for waits that have ended before this migration, and until the next wait begins.

alter table pawl.process add column waited_at timestamptz; -- when it was suspended to wait in `step`; null: its state was patched or it was retried since
alter table pawl.process_response add column waited_at timestamptz; -- of one that resumed the process: since when that had waited
